import { type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Closes connections whose clients are silent for the idle timeout (docs/interface.md O4, U12). Milliseconds. A client
 * that waits for us, for a slow disk first of all, is not silent.
 */
export function closeSilentConnections(server: Server, idleTimeout: number): void {
  server.on('timeout', (socket: Socket) => {
    const answer = presentAnswer(socket)
    if (answer !== null && isAwaited(answer)) socket.setTimeout(idleTimeout)
    else socket.destroy()
  })
}

/** Whether the answer has not begun though its request is here, wholly or as much as we take at a time, which may be nothing. */
const isAwaited = ({ headersSent, req }: ServerResponse): boolean =>
  !headersSent && (req.complete || req.readableLength > 0 || req.socket.isPaused())

/** The answer that a connection waits for, null where no request was understood. Node itself looks in the same place. */
export const presentAnswer = (socket: Socket): ServerResponse | null =>
  '_httpMessage' in socket && socket._httpMessage instanceof ServerResponse ? socket._httpMessage : null
