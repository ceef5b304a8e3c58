import { once } from 'node:events'

/** Where results go. */
export interface Output {
  /** A person reads it, not a script. */
  readonly isTerminal: boolean
  /** Resolves when there is room for more; rejects once the reader has left. */
  readonly write: (bytes: string | Uint8Array) => Promise<void>
  /** Aborted when the reader leaves, as `head` does. */
  readonly closed: AbortSignal
}

/** Standard output. A reader that leaves early is no error: `closed` tells, and the command may end. */
export function standardOutput(stream: NodeJS.WriteStream = process.stdout): Output {
  const left = new AbortController()
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    left.abort(error)
  })
  return {
    isTerminal: stream.isTTY === true,
    closed: left.signal,
    async write(bytes) {
      left.signal.throwIfAborted()
      if (!stream.write(bytes)) await once(stream, 'drain', { signal: left.signal })
    },
  }
}
