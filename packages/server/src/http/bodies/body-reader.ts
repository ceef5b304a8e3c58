import type { IncomingMessage } from 'node:http'
import type { Backpressure } from './backpressure.ts'
import { sendContinue } from './unread-bodies.ts'

/**
 * Yields the body as it arrives. The memory of a chunk is freed when the next one is requested. If the client expects
 * `100 Continue`, it is sent before the first read. A reader that stops early does not destroy the request, so a response
 * can follow.
 */
export type BodyReader = (request: IncomingMessage) => AsyncGenerator<Uint8Array, void, void>

export function createBodyReader(backpressure: Backpressure): BodyReader {
  return async function* readBody(request) {
    const ticket = backpressure.open(request)
    try {
      await ticket.waitUntilResumed()
      sendContinue(request)
      for await (const chunk of request.iterator({ destroyOnReturn: false })) {
        ticket.hold(chunk.byteLength)
        yield chunk
        ticket.release(chunk.byteLength)
        freeMemory(chunk)
        await ticket.waitUntilResumed()
      }
    } finally {
      ticket.close()
    }
  }
}

/**
 * Reads the whole body of a request that has a Content-Length and no `Expect`. If the body has not arrived completely, its
 * length is reserved from `room`. If there is not enough room, nothing is read and the result is null.
 */
export type WholeBodyReader = (request: IncomingMessage) => Promise<Uint8Array | null>

export function createWholeBodyReader(backpressure: Backpressure, room = 8 * 1024 * 1024): WholeBodyReader {
  let reserved = 0
  return async (request) => {
    // Most small bodies arrive together with their headers.
    if (request.complete) return joined(arrivedChunks(request), request)
    const length = contentLength(request)
    if (reserved + length > room) return null
    reserved += length
    const ticket = backpressure.open(request)
    try {
      await ticket.waitUntilResumed()
      return joined(await collect(request), request)
    } finally {
      reserved -= length
      ticket.close()
    }
  }
}

const contentLength = ({ headers }: IncomingMessage): number => Number(headers['content-length'])

function arrivedChunks(request: IncomingMessage): Uint8Array[] {
  const chunks: Uint8Array[] = []
  for (;;) {
    const chunk: unknown = request.read()
    if (!(chunk instanceof Uint8Array)) return chunks
    chunks.push(chunk)
  }
}

/** Throws if bytes are missing. Node usually reports this earlier as an error. */
function joined(chunks: readonly Uint8Array[], request: IncomingMessage): Uint8Array {
  const [first, ...others] = chunks
  const bytes = first && others.length === 0 ? first : Buffer.concat(chunks)
  if (bytes.byteLength !== contentLength(request)) throw abortedError()
  return bytes
}

/** Uses events, because for one or two chunks Node's iterator costs twice as much. */
function collect(request: IncomingMessage): Promise<Uint8Array[]> {
  return new Promise((resolve, reject) => {
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
 * Frees the memory of a chunk that owns its buffer. Otherwise the garbage collector runs dozens of times for each gigabyte
 * of bodies. These runs take longer than hashing the bytes.
 */
function freeMemory({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}
