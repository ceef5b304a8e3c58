import type { ServerResponse } from 'node:http'
import { finished, type Readable } from 'node:stream'

/** Bytes that a response holds before its source is paused. */
const maxUnsent = 128 * 1024

/**
 * Sends a stream of `length` bytes, and ends the response after it. If it fails or has another length, the connection is closed, so the
 * response is never complete; `onFailure` is called then, unless the client has closed the connection.
 */
export function sendStream(
  stream: Readable,
  response: ServerResponse,
  length: number,
  onFailure: (error: Error) => void,
): void {
  let missing = length

  function fail(error: Error): void {
    if (missing === 0 || response.destroyed) return
    response.destroy()
    onFailure(error)
  }

  function send(chunk: Buffer<ArrayBuffer>): void {
    if (chunk.byteLength > missing) {
      fail(new Error('a stream is longer than the response'))
      return
    }
    missing -= chunk.byteLength
    response.write(chunk, (error) => {
      if (error) return
      free(chunk)
      if (stream.isPaused() && response.writableLength < maxUnsent) stream.resume()
    })
    if (missing === 0) response.end()
    else if (response.writableLength >= maxUnsent) stream.pause()
  }

  finished(stream, { writable: false }, (error) =>
    fail(error ?? new Error('a stream is shorter than the response')),
  )
  if (response.destroyed) return void stream.destroy()
  response.once('close', () => stream.destroy())
  stream.on('data', send)
}

/**
 * Frees the memory of bytes that the system has accepted. Left to the garbage collector, the chunks of a large download start several
 * complete collections a second.
 */
function free({ buffer, byteLength }: Buffer<ArrayBuffer>): void {
  if (buffer.byteLength === byteLength && !buffer.detached) buffer.transfer(0)
}
