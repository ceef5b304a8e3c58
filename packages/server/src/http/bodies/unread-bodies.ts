import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { Fault } from '../../core/fault.ts'

/** How long a client may go on sending a body that was already refused, so that it gets to read why. Milliseconds. */
const patience = 5_000

/** The answers to requests whose clients wait for `100 Continue`. */
const waiting = new WeakMap<IncomingMessage, ServerResponse>()

/** Hands on, without an answer of Node's own, requests that expect one before they send their body (docs/interface.md U11). */
export function handleExpectations(server: Server): void {
  // Node answers `100 Continue` by itself unless somebody listens here. Without it, Node closes after the answer.
  server.on('checkContinue', (request, response) => {
    waiting.set(request, response)
    server.emit('request', request, response)
  })
  // Any other expectation is ignored, as RFC 9110, section 10.1.1, allows; Node's own 417 would be no problem (P1).
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
}

/** A body that is refused before it is read is read and discarded for a few seconds, then cut off. */
export function discardUnreadBody(request: IncomingMessage, response: ServerResponse): void {
  if (!hasBody(request)) return
  lingerOnClose(request)
  response.once('finish', () => discardRest(request))
}

export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

/**
 * Where Node closes a connection after the answer, it does so both ways at once; what the client still sends then
 * resets the connection, which destroys an answer that was not read yet. Until the body has ended, only end our side.
 */
function lingerOnClose(request: IncomingMessage): void {
  const { socket } = request
  socket.destroySoon = () =>
    request.complete ? Socket.prototype.destroySoon.call(socket) : void socket.end()
}

function discardRest(request: IncomingMessage): void {
  if (request.complete || request.destroyed) return
  const { socket } = request
  const cut = setTimeout(() => socket.destroy(), patience)
  request.once('close', () => clearTimeout(cut))
  request.once('end', () => {
    clearTimeout(cut)
    if (socket.writableEnded) socket.destroy()
  })
  request.resume()
}

/** Tells a client that waits for it to send its body. */
export function sendContinue(request: IncomingMessage): void {
  waiting.get(request)?.writeContinue()
  waiting.delete(request)
}

/** Reads a body that no operation needs, for the sake of the next request. Throws Fault above `limit` bytes. */
export async function discardBody(request: IncomingMessage, limit: number): Promise<void> {
  const tooLarge = new Fault('body-too-large', 'This operation takes no body of this size.')
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge
  let size = 0
  sendContinue(request)
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += chunk.byteLength
    if (size > limit) throw tooLarge
  }
}
