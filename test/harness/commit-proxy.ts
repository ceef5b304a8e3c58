import { connect, createServer, type Socket } from 'node:net'

/** What happens to a COMMIT that a client sends. */
export type CommitFault =
  /** The server commits; the client loses its connection before the response. */
  | 'response lost'
  /** The server does not receive it, and ends the transaction when its connection is closed. */
  | 'request lost'
  /** The client loses its connection first; the server receives it afterwards. */
  | 'late'

/** A proxy between a client and PostgreSQL that breaks connections during commits. */
export interface CommitProxy extends AsyncDisposable {
  readonly port: number
  /** The next COMMIT of any connection gets this fault. */
  breakNext(fault: CommitFault): void
  /** How many commits were broken. */
  readonly broken: () => number
  /** Sends the commits that were held back as `late`. */
  sendLate(): void
}

/** The simple query COMMIT: type, length, text, zero. */
const commit = Buffer.from('Q\0\0\0\x0bCOMMIT\0', 'latin1')

export async function startCommitProxy(target: number): Promise<CommitProxy> {
  let next: CommitFault | null = null
  let broken = 0
  const sockets = new Set<Socket>()
  const late: (() => void)[] = []

  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => sockets.delete(socket))
    }
    let isBroken = false
    client.on('data', (chunk) => {
      if (next === null || !chunk.includes(commit)) return void upstream.write(chunk)
      const fault = next
      next = null
      broken += 1
      isBroken = true
      if (fault === 'response lost') {
        upstream.once('data', () => client.destroy())
        upstream.write(chunk)
      } else if (fault === 'late') {
        late.push(() => upstream.write(chunk))
        client.destroy()
      } else {
        client.destroy()
        upstream.destroy()
      }
    })
    upstream.on('data', (chunk) => void (isBroken || client.write(chunk)))
    upstream.on('close', () => client.destroy())
    client.on('close', () => void (isBroken || upstream.destroy()))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    port: address.port,
    breakNext(fault) {
      next = fault
    },
    broken: () => broken,
    sendLate() {
      for (const send of late.splice(0)) send()
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((done) => server.close(done))
    },
  }
}
