import { connect } from 'node:net'

/** A TCP connection to the server whose sending and reading the test controls. */
export interface Connection extends Disposable {
  send(bytes: string | Uint8Array): void
  /** Ends the sending side and continues to read. */
  end(): void
  /** Everything read so far, as Latin-1. */
  received(): string
  /** Stops reading until `resume`. */
  pause(): void
  resume(): void
  /** Resolves when the connection is closed, also by a reset. */
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
  // The server may reset the connection.
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
