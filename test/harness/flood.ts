import { connect } from 'node:net'
import { parseAnswer, type RawAnswer } from './raw-http.ts'
import { until } from './until.ts'

const chunk = Buffer.alloc(64 * 1024, 'x')
const framed = Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')])

/**
 * Sends a head and then, whatever is answered, at least `total` bytes or as many as the server takes before it ends
 * the connection. Reads all the while, and resolves with the answer.
 */
export async function flood(
  url: string,
  head: string,
  options: { total: number; chunked?: boolean },
): Promise<RawAnswer> {
  const { hostname, port } = new URL(url)
  // Half open, as a client that does not notice that the server has said its last.
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
  const received: Buffer[] = []
  socket.on('data', (bytes) => received.push(bytes))
  const text = () => Buffer.concat(received).toString('latin1')
  // A reset is one way to end.
  socket.on('error', () => undefined)
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  const drained = () => new Promise<void>((resolve) => socket.once('drain', () => resolve()))
  socket.write(head)
  for (let sent = 0; sent < options.total && !socket.destroyed; sent += chunk.length) {
    if (!socket.write(options.chunked ? framed : chunk)) await Promise.race([drained(), closed])
  }
  await until('an answer', () => socket.destroyed || text().includes('\r\n\r\n'))
  socket.destroy()
  await closed
  return parseAnswer(text())
}
