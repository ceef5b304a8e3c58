import { connect } from 'node:net'
import { parseResponse, type RawResponse } from './raw-http.ts'
import { until } from './until.ts'

const chunk = Buffer.alloc(64 * 1024, 'x')
const framed = Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')])

/**
 * Sends a head and then at least `total` bytes, regardless of the response, until the server closes the connection.
 * Reads at the same time, and resolves with the response.
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
    if (!socket.write(options.chunked ? framed : chunk)) await Promise.race([drained(), closed])
  }
  await until('a response', () => socket.destroyed || text().includes('\r\n\r\n'))
  socket.destroy()
  await closed
  return parseResponse(text())
}
