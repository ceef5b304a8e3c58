import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'

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
