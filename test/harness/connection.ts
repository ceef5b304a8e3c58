import { connect } from 'node:net'

/** A TCP connection to the server that sends and reads only when told to. */
export interface Connection extends Disposable {
  send(bytes: string | Uint8Array): void
  /** Sends no more, and goes on reading. */
  end(): void
  /** Everything read so far, as Latin-1. */
  received(): string
  /** Stops and goes on reading. */
  pause(): void
  resume(): void
  /** Resolves when the connection is closed, in whatever way. */
  readonly closed: Promise<void>
}

export async function openConnection(url: string): Promise<Connection> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', () => resolve())
    socket.once('error', reject)
  })
  // A reset is one way to be closed.
  socket.on('error', () => undefined)
  return {
    send: (bytes) => socket.write(bytes),
    end: () => void socket.end(),
    received: () => Buffer.concat(chunks).toString('latin1'),
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    closed,
    [Symbol.dispose]: () => socket.destroy(),
  }
}
