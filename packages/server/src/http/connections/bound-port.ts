import { once } from 'node:events'
import type { Server } from 'node:http'
import { createServer, type Server as Listener, type Socket } from 'node:net'

/** A port that accepts connections before there is a server for them. */
export interface BoundPort {
  readonly port: number
  /** Lets a server take over the port, and the connections that are waiting. */
  serve(server: Server): Promise<void>
  /** Accepts no more connections; resolves when those of the server are closed. */
  close(): Promise<void>
}

/**
 * Binds a port, a free one for 0: the base URL must be known before the server is made, and a port that was only looked
 * up could be lost to another process. Rejects where the address is taken.
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
