import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { currentResponse } from './pipelining.ts'

/**
 * Closes connections whose clients are silent for the idle timeout (docs/interface.md O4, U12). Milliseconds. A client
 * that waits for us, for a slow disk first of all, is not silent.
 */
export function closeOnIdleTimeout(server: Server, idleTimeout: number): void {
  server.on('timeout', (socket: Socket) => {
    const answer = currentResponse(socket)
    if (answer !== null && isAwaited(answer)) socket.setTimeout(idleTimeout)
    else socket.destroy()
  })
}

/** Whether the answer has not begun though its request is here, wholly or as much as we take at a time, which may be nothing. */
const isAwaited = ({ headersSent, req }: ServerResponse): boolean =>
  !headersSent && (req.complete || req.readableLength > 0 || req.socket.isPaused())
