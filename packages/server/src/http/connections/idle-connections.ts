import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { currentResponse } from './pipelining.ts'

/**
 * Closes connections on which the client has been silent for the idle timeout, in milliseconds (docs/interface.md O4,
 * U12). Time in which the client waits for the service, for a slow disk for example, does not count.
 */
export function closeOnIdleTimeout(server: Server, idleTimeout: number): void {
  server.on('timeout', (socket: Socket) => {
    const response = currentResponse(socket)
    if (response !== null && isServersTurn(response)) socket.setTimeout(idleTimeout)
    else socket.destroy()
  })
}

/** Whether the server, not the client, must act: the request is complete, has unread bytes, or is paused. */
const isServersTurn = ({ headersSent, req }: ServerResponse): boolean =>
  !headersSent && (req.complete || req.readableLength > 0 || req.socket.isPaused())

/**
 * Tracks connections that have not sent a request, such as those that browsers open in advance. `closeUnused` closes
 * them and all idle ones, so that they do not delay a stop: Node's `closeIdleConnections` leaves the former open.
 */
export function trackUnusedConnections(server: Server): { closeUnused(): void } {
  const unused = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    unused.add(socket)
    socket.once('close', () => unused.delete(socket))
  })
  server.on('request', ({ socket }: IncomingMessage) => unused.delete(socket))
  return {
    closeUnused() {
      for (const socket of unused) socket.destroy()
      server.closeIdleConnections()
    },
  }
}
