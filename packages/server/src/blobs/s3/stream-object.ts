import { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { BlobTruncatedError } from '../blobs.ts'
import type { ObjectCalls } from './object-calls.ts'
import { readObject } from './read-object.ts'
import { stalled } from './s3-errors.ts'

/**
 * The bytes `start` to `end` of an object, both inclusive, as the stream of the response itself: each further stream in between
 * would take a fifth of the time of a large download. It fails as readObject does.
 */
export async function streamObject(
  calls: Pick<ObjectCalls, 'get' | 'timeouts'>,
  key: string,
  start: number,
  end: number,
): Promise<Readable> {
  const found = await calls.get(key, start, end)
  if (found === null) throw new BlobTruncatedError('a blob was removed')
  const { body, length } = found
  // Only a length that the store has announced is checked by Node.js.
  if (length === null || !(body instanceof IncomingMessage)) {
    const get = async () => found
    return Readable.from(readObject({ get, timeouts: calls.timeouts }, key, start, end), {
      objectMode: false,
    })
  }
  if (length !== end - start + 1) {
    body.destroy()
    throw new BlobTruncatedError('the store sends another number of bytes than were requested')
  }
  failWhenStalled(body, calls.timeouts.stall)
  return body
}

/** Destroys a body that the store has stopped sending. A body whose reader is slow is full, and not affected. */
function failWhenStalled(body: IncomingMessage, timeout: number): void {
  const interval = timeout / 4
  let [received, idle] = [-1, 0]
  const timer = setInterval(() => {
    const before = received
    received = body.socket.bytesRead
    const isFull = body.readableLength >= body.readableHighWaterMark
    idle = received === before && !isFull ? idle + interval : 0
    if (idle >= timeout) body.destroy(stalled())
  }, interval)
  body.once('close', () => clearInterval(timer))
}
