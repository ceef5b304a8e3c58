import { connect, createServer, type Socket } from 'node:net'

/** A TCP proxy whose target can change, as an address does in a failover. */
export interface SwitchingProxy extends AsyncDisposable {
  readonly port: number
  /** Closes all connections; new ones lead to this port. */
  switchTo(target: number): void
}

export async function startSwitchingProxy(first: number): Promise<SwitchingProxy> {
  let target = first
  const sockets = new Set<Socket>()
  const closeAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
      socket.pipe(other)
    }
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    port: address.port,
    switchTo(port) {
      target = port
      closeAll()
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((done) => server.close(done))
      closeAll()
      await closed
    },
  }
}
