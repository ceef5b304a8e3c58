import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'

/** How long a client may go on sending a body that was already refused, so that it gets to read why. Milliseconds. */
const patience = 5_000

/**
 * Bodies that are refused before they are read: a client that asked with `Expect: 100-continue` is told before it
 * sends anything (docs/interface.md U11), any other is read and discarded for a few seconds, then cut off.
 */
export function boundUnreadBodies(app: FastifyInstance, server: Server): void {
  // Node answers `100 Continue` by itself unless somebody listens here.
  server.on('checkContinue', (request, response) => server.emit('request', request, response))
  // Any other expectation is ignored, as RFC 9110, section 10.1.1, allows; Node's own 417 would be no problem (P1).
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))

  app.addHook('onSend', async (request, reply) => {
    // Refused without 100: the client sends no body, and what comes next on this connection is not one.
    if (awaitsContinue(request.raw)) reply.header('connection', 'close')
  })
  app.addHook('onResponse', async ({ raw }) => {
    if (raw.complete || raw.destroyed) return
    const cut = setTimeout(() => raw.socket.destroy(), patience)
    raw.once('close', () => clearTimeout(cut))
    raw.once('end', () => clearTimeout(cut))
    raw.resume()
  })
}

/** Whether the client waits for `100 Continue`, and has not been told to go on. */
const awaitsContinue = (request: IncomingMessage): boolean =>
  request.headers.expect?.toLowerCase() === '100-continue' && !request.readableDidRead

/** Tells a client that waits for it to send its body; call it once the request is accepted, just before reading. */
export function acceptBody(request: IncomingMessage, response: ServerResponse): void {
  if (awaitsContinue(request)) response.writeContinue()
}
