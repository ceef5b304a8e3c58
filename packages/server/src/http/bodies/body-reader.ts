import type { IncomingMessage } from 'node:http'
import type { Backpressure } from './backpressure.ts'
import { sendContinue } from './unread-bodies.ts'

/**
 * The body as it arrives; each chunk is empty once the next one is asked for. A client that waits to be told to send it
 * is told when the first byte is asked for. The request outlives a reader that gives up, so that it can be answered.
 */
export type BodyReader = (
  request: IncomingMessage,
  /** Part of a body is worth nothing. */
  wholeOnly?: boolean,
) => AsyncGenerator<Uint8Array, void, void>

/** `collectRoom` bounds the bytes of all bodies that are collected before their readers get them. */
export function createBodyReader(backpressure: Backpressure, collectRoom = 8 * 1024 * 1024): BodyReader {
  let collected = 0

  /** Reserves room for a body that may be collected whole. Returns what gives it back, null where there is none. */
  function reserve(request: IncomingMessage): (() => void) | null {
    const length = Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY)
    if (length > smallBody || collected + length > collectRoom) return null
    collected += length
    let isReserved = true
    const giveBackRoom = () => {
      if (isReserved) collected -= length
      isReserved = false
    }
    // A reader that was abandoned gives nothing back.
    request.once('close', giveBackRoom)
    return giveBackRoom
  }

  return async function* readBody(request, wholeOnly = false) {
    const ticket = backpressure.open(request)
    let giveBackRoom: (() => void) | null = null
    try {
      await ticket.waitUntilResumed()
      sendContinue(request)
      giveBackRoom = wholeOnly ? reserve(request) : null
      const chunks = giveBackRoom ? allOf(request) : request.iterator({ destroyOnReturn: false })
      for await (const chunk of chunks) {
        ticket.hold(chunk.byteLength)
        yield chunk
        ticket.release(chunk.byteLength)
        giveBack(chunk)
        await ticket.waitUntilResumed()
      }
    } finally {
      giveBackRoom?.()
      ticket.close()
    }
  }
}

/** Bodies up to this size may be collected: as much as a stream of Node's takes in before it is read. Bytes. */
const smallBody = 65_536

/** Collects the body: an iterator of Node's for one chunk or two costs twice as much as all else that reads them. */
async function* allOf(request: IncomingMessage): AsyncGenerator<Buffer, void, void> {
  yield* await new Promise<Buffer[]>((resolve, reject) => {
    const gone = () => {
      if (!request.readableEnded) reject(request.errored ?? aborted())
    }
    if (request.destroyed) return reject(request.errored ?? aborted())
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.once('end', () => resolve(chunks))
    request.once('error', reject)
    request.once('close', gone)
  })
}

/** As Node tells it. */
const aborted = (): Error => Object.assign(new Error('aborted'), { code: 'ECONNRESET' })

/**
 * Frees a chunk that has memory of its own. Left to the garbage collector, chunks make it run dozens of times for each
 * gigabyte, which takes longer than the hashing.
 */
function giveBack({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}
