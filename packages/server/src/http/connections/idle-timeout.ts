import type { Server, ServerResponse } from 'node:http'
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
