import type { IncomingMessage } from 'node:http'
import type { Backpressure } from './backpressure.ts'
import { sendContinue } from './unread-bodies.ts'

/**
 * Yields the body as it arrives. The memory of a chunk is freed when the next one is requested. Sends `100 Continue`
 * before the first read where the client expects it. A reader that stops early does not destroy the request, so a
 * response can follow.
 */
export type BodyReader = (
  request: IncomingMessage,
  /** Whether a partial body is useless, so that small bodies may be collected before the first chunk is yielded. */
  wholeOnly?: boolean,
) => AsyncGenerator<Uint8Array, void, void>

/** `collectRoom` limits the bytes of all bodies that are collected before they are yielded. */
export function createBodyReader(backpressure: Backpressure, collectRoom = 8 * 1024 * 1024): BodyReader {
  let collected = 0

  /** Reserves room to collect a body. Returns the function that releases the room, or null where there is none. */
  function reserve(request: IncomingMessage): (() => void) | null {
    const length = Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY)
    if (length > smallBody || collected + length > collectRoom) return null
    collected += length
    let isReserved = true
    const release = () => {
      if (isReserved) collected -= length
      isReserved = false
    }
    // An abandoned reader does not release its room.
    request.once('close', release)
    return release
  }

  return async function* readBody(request, wholeOnly = false) {
    const ticket = backpressure.open(request)
    let releaseRoom: (() => void) | null = null
    try {
      await ticket.waitUntilResumed()
      sendContinue(request)
      releaseRoom = wholeOnly ? reserve(request) : null
      const chunks = releaseRoom ? collect(request) : request.iterator({ destroyOnReturn: false })
      for await (const chunk of chunks) {
        ticket.hold(chunk.byteLength)
        yield chunk
        ticket.release(chunk.byteLength)
        freeMemory(chunk)
        await ticket.waitUntilResumed()
      }
    } finally {
      releaseRoom?.()
      ticket.close()
    }
  }
}

/** The largest body to collect: the default high-water mark of Node's streams. Bytes. */
const smallBody = 65_536

/** Yields the chunks of a body once all have arrived: for one or two chunks Node's iterator is twice as expensive. */
async function* collect(request: IncomingMessage): AsyncGenerator<Buffer, void, void> {
  yield* await new Promise<Buffer[]>((resolve, reject) => {
    const rejectIfIncomplete = () => {
      if (!request.readableEnded) reject(request.errored ?? abortedError())
    }
    if (request.destroyed) return reject(request.errored ?? abortedError())
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.once('end', () => resolve(chunks))
    request.once('error', reject)
    request.once('close', rejectIfIncomplete)
  })
}

/** The error that Node throws for an aborted request. */
const abortedError = (): Error => Object.assign(new Error('aborted'), { code: 'ECONNRESET' })

/**
 * Frees the memory of a chunk that owns its buffer. Otherwise the garbage collector runs dozens of times for each
 * gigabyte, which takes longer than hashing it.
 */
function freeMemory({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}
