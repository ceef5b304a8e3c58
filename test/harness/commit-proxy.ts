import { connect, createServer, type Socket } from 'node:net'

/** What happens to a COMMIT that a client sends. */
export type CommitFault =
  /** The server commits; the client loses its connection before the response. */
  | 'response lost'
  /** The server does not receive it, and ends the transaction when its connection is closed. */
  | 'request lost'
  /** The client loses its connection first; the server receives it afterwards. */
  | 'late'

/** A COMMIT that the server has not received. What its client sends after it waits too. */
interface HeldCommit {
  /** Sends the COMMIT alone, and resolves when the server has responded to it. */
  commit(): Promise<void>
  /** Lets `release` send this statement in its place. */
  replaceBy(statement: string): void
  /** Sends what waits, and holds nothing on this connection any more. */
  release(): void
}

/** A proxy between a client and PostgreSQL that breaks connections during commits. */
export interface CommitProxy extends AsyncDisposable {
  readonly port: number
  /** The next COMMIT of any connection gets this fault. */
  breakNext(fault: CommitFault): void
  /** Holds the next COMMIT of any connection, with what its client sends after it. */
  holdNext(): Promise<HeldCommit>
  /** How many commits were broken. */
  readonly broken: () => number
  /** Sends the commits that were held back as `late`. */
  sendLate(): void
}

/** A simple query: type, length, text, zero. */
function query(statement: string): Buffer {
  const text = Buffer.from(`${statement}\0`)
  const head = Buffer.from('Q\0\0\0\0', 'latin1')
  head.writeInt32BE(text.byteLength + 4, 1)
  return Buffer.concat([head, text])
}

/** Whether the last message of a chunk is ReadyForQuery outside of a transaction: the response to a COMMIT is complete. */
const endsResponse = (chunk: Buffer): boolean => chunk.subarray(-6).toString('latin1') === 'Z\0\0\0\x05I'

const commit = query('COMMIT')

export async function startCommitProxy(target: number): Promise<CommitProxy> {
  let next: CommitFault | null = null
  let onHeld: ((held: HeldCommit) => void) | null = null
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
    let held: Buffer[] | null = null
    /** Holds a chunk from the COMMIT on. */
    const hold = (chunk: Buffer): HeldCommit => {
      const start = chunk.indexOf(commit)
      upstream.write(chunk.subarray(0, start))
      let request = chunk.subarray(start, start + commit.length)
      held = [chunk.subarray(start + commit.length)]
      return {
        async commit() {
          const responded = new Promise<void>((done) =>
            upstream.on('data', (data) => endsResponse(data) && done()),
          )
          upstream.write(request)
          request = Buffer.alloc(0)
          await responded
        },
        replaceBy(statement) {
          request = query(statement)
        },
        release() {
          for (const bytes of [request, ...(held ?? [])]) upstream.write(bytes)
          held = null
        },
      }
    }
    client.on('data', (chunk) => {
      if (held !== null) return void held.push(chunk)
      if (onHeld !== null && chunk.includes(commit)) {
        onHeld(hold(chunk))
        onHeld = null
        return
      }
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
    holdNext: () =>
      new Promise((resolve) => {
        onHeld = resolve
      }),
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
