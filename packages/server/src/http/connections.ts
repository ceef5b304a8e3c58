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
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const responses = underWay.get(request.socket)
    const forget = () => responses?.delete(response)
    responses?.add(response)
    // A body that was refused may still be arriving; to close then would cost its client the refusal.
    response.once('close', () => {
      if (request.complete || request.destroyed) forget()
      else request.once('close', forget)
    })
  })
  return {
    closeUnused() {
      for (const [socket, responses] of underWay) if (responses.size === 0) socket.destroy()
    },
  }
}
