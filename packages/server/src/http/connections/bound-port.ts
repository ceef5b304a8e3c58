import { once } from 'node:events'
import type { Server } from 'node:http'
import { createServer, type Server as Listener, type Socket } from 'node:net'

/** A bound port that accepts connections before the server exists. */
export interface BoundPort {
  readonly port: number
  /** Hands the port and the waiting connections over to a server. */
  serve(server: Server): Promise<void>
  /** Stops accepting connections; resolves when those of the server are closed. */
  close(): Promise<void>
}

/**
 * Binds a port, a free one for 0. It is bound before the server exists, because the server needs the base URL, which may
 * contain the port. Rejects where the address is in use.
 */
export async function bindPort(host: string, port: number): Promise<BoundPort> {
  const waiting: Socket[] = []
  const listener = createServer({ pauseOnConnect: true }, (socket) => waiting.push(socket))
  listener.listen({ host, port })
  await once(listener, 'listening')
  const address = listener.address()
  let open: Listener | null = listener
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    async serve(server) {
      open = server
      server.listen(listener)
      await once(server, 'listening')
      for (const socket of waiting.splice(0)) {
        server.emit('connection', socket)
        socket.resume()
      }
    },
    async close() {
      for (const socket of waiting.splice(0)) socket.destroy()
      const closing = open
      open = null
      await new Promise<void>((resolve) => (closing ? closing.close(() => resolve()) : resolve()))
    },
  }
}
