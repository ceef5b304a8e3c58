import { Readable } from 'node:stream'
import { IncomingMessage } from '../../core/node-http.ts'
import { BlobTruncatedError } from '../blobs.ts'
import type { ObjectCalls } from './object-calls.ts'
import { readObject } from './read-object.ts'
import { requestBody } from './request-body.ts'
import { removed, stalled } from './s3-errors.ts'

/** Bytes from which a connection of its own is faster than one of the SDK. */
const minDirect = 1024 * 1024

/** Milliseconds until a signed URL expires. It is used immediately. */
const lifetime = 3_600_000

/**
 * The bytes `start` to `end` of an object, both inclusive, without a copy in this process. The stream fails if the store is too slow, but
 * it may end early: the caller counts the bytes. Throws as readObject, and Fault `media-unknown` if the object was removed.
 */
export async function streamObject(
  calls: Pick<ObjectCalls, 'get' | 'signUrl' | 'timeouts'>,
  key: string,
  start: number,
  end: number,
): Promise<Readable> {
  const length = end - start + 1
  if (length >= minDirect) {
    const url = new URL(await calls.signUrl(key, null, lifetime))
    const socket = await requestBody(url, { start, length }, calls.timeouts.short)
    if (socket !== null) return failWhenStalled(socket, () => socket.bytesRead, calls.timeouts.stall)
  }
  const found = await calls.get(key, start, end)
  if (found === null) throw removed()
  const { body } = found
  // Only a length that the store has announced is checked by Node.js.
  if (found.length === null || !(body instanceof IncomingMessage)) {
    const get = async () => found
    return Readable.from(readObject({ get, timeouts: calls.timeouts }, key, start, end), {
      objectMode: false,
    })
  }
  if (found.length !== length) {
    body.destroy()
    throw new BlobTruncatedError('the store sends another number of bytes than were requested')
  }
  return failWhenStalled(body, () => body.socket.bytesRead, calls.timeouts.stall)
}

/** Destroys a body whose reader waits for the store for too long. */
function failWhenStalled(body: Readable, received: () => number, timeout: number): Readable {
  const interval = timeout / 4
  let [last, idle] = [-1, 0]
  const timer = setInterval(() => {
    const now = received()
    idle = now === last && body.readableLength === 0 ? idle + interval : 0
    last = now
    if (idle >= timeout) body.destroy(stalled())
  }, interval)
  body.once('close', () => clearInterval(timer))
  return body
}
