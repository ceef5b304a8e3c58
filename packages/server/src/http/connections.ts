import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Knows which connections have a request under way. Node's own `closeIdleConnections` passes over those that never
 * sent one, such as browsers open in advance.
 */
export function watchConnections(server: Server): { closeUnused(): void } {
  const underWay = new Map<Socket, Set<ServerResponse>>()
  server.on('connection', (socket: Socket) => {
    underWay.set(socket, new Set())
    socket.once('close', () => underWay.delete(socket))
  })
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const responses = underWay.get(socket)
    responses?.add(response)
    response.once('close', () => responses?.delete(response))
  })
  return {
    closeUnused() {
      for (const [socket, responses] of underWay) if (responses.size === 0) socket.destroy()
    },
  }
}
