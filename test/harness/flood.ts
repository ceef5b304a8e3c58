import { connect } from 'node:net'
import { parseResponse, type RawResponse } from './raw-http.ts'
import { until } from './until.ts'

const chunk = Buffer.alloc(64 * 1024, 'x')
const framed = Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')])

/**
 * Sends a head and then a body of `total` bytes, regardless of the response, until the server closes the connection.
 * The last chunk of a chunked body is missing. Reads at the same time, and resolves with the response.
 */
export async function flood(
  url: string,
  head: string,
  options: { total: number; chunked?: boolean },
): Promise<RawResponse> {
  const { hostname, port } = new URL(url)
  // Half open, as a client that ignores the end of the response.
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
  const received: Buffer[] = []
  socket.on('data', (bytes) => received.push(bytes))
  const text = () => Buffer.concat(received).toString('latin1')
  // The server may reset the connection.
  socket.on('error', () => undefined)
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  const drained = () => new Promise<void>((resolve) => socket.once('drain', () => resolve()))
  socket.write(head)
  for (let sent = 0; sent < options.total && !socket.destroyed; sent += chunk.length) {
    // Further bytes would be the next request, and receive a response of their own.
    const bytes = options.chunked ? framed : chunk.subarray(0, options.total - sent)
    if (!socket.write(bytes)) await Promise.race([drained(), closed])
  }
  const isWhole = ({ headers, body }: RawResponse) =>
    body.length >= Number(headers.get('content-length') ?? Infinity)
  await until('a response', () => socket.destroyed || isWhole(parseResponse(text())))
  socket.destroy()
  await closed
  return parseResponse(text())
}
