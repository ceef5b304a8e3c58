import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Closes the connections that nobody uses at the moment, which would hold up a stop. It knows those that never sent a
 * request, such as browsers open in advance: Node's own `closeIdleConnections` passes over them.
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
