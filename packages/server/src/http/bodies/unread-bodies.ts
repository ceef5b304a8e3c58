import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { Fault } from '../../core/fault.ts'

/** How long a client may continue to send a refused body, so that it can read the response. Milliseconds. */
const discardTimeout = 5_000

/** The responses to requests whose clients wait for `100 Continue`. */
const awaitingContinue = new WeakMap<IncomingMessage, ServerResponse>()

/** Handles requests with `Expect` like all others, without Node's automatic responses (docs/interface.md U11). */
export function handleExpectations(server: Server): void {
  // Without this listener Node sends `100 Continue` at once. sendContinue sends it instead.
  server.on('checkContinue', (request, response) => {
    awaitingContinue.set(request, response)
    server.emit('request', request, response)
  })
  // Other expectations are ignored, as RFC 9110, section 10.1.1, allows. Node's own 417 has no problem body (P1).
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
}

/** After the response, discards the unread rest of the body for a few seconds, then closes the connection. */
export function discardUnreadBody(request: IncomingMessage, response: ServerResponse): void {
  if (!hasBody(request)) return
  // Before Node's own listener, which may close the connection.
  response.prependOnceListener('finish', () => {
    if (isUnread(request)) lingerOnClose(request)
  })
  response.once('finish', () => {
    if (isUnread(request)) discardRest(request)
  })
}

const isUnread = ({ complete, destroyed }: IncomingMessage): boolean => !complete && !destroyed

export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

/**
 * Closes only the sending side of the connection until the body has ended. Node closes both sides; bytes that arrive
 * afterwards reset the connection, and the client loses the response.
 */
function lingerOnClose(request: IncomingMessage): void {
  const { socket } = request
  // Assigned only if it is needed. V8 allocates such a function in the old generation, where it keeps the request in memory.
  socket.destroySoon = () =>
    request.complete ? Socket.prototype.destroySoon.call(socket) : void socket.end()
}

/** The connections of which the rest of a body is discarded. */
const discarding = new WeakSet<Socket>()

/** Whether the connection had its response, and the rest of the request's body is discarded. */
export const isDiscarding = (socket: Socket): boolean => discarding.has(socket)

function discardRest(request: IncomingMessage): void {
  const { socket } = request
  discarding.add(socket)
  const timer = setTimeout(() => socket.destroy(), discardTimeout)
  request.once('close', () => clearTimeout(timer))
  request.once('end', () => {
    discarding.delete(socket)
    clearTimeout(timer)
    if (socket.writableEnded) socket.destroy()
  })
  request.resume()
}

/** Sends `100 Continue` to a client that waits for it. */
export function sendContinue(request: IncomingMessage): void {
  awaitingContinue.get(request)?.writeContinue()
  awaitingContinue.delete(request)
}

/** Reads and discards a body, so that the connection can be reused. Throws Fault above `limit` bytes. */
export async function discardBody(request: IncomingMessage, limit: number): Promise<void> {
  const tooLarge = new Fault('body-too-large', 'This operation does not accept a body of this size.')
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge
  let size = 0
  sendContinue(request)
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += chunk.byteLength
    if (size > limit) throw tooLarge
  }
}
