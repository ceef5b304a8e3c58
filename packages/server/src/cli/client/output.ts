import { once } from 'node:events'

/** The destination of results. */
export interface Output {
  readonly isTerminal: boolean
  /** Resolves when more can be written; rejects after the reader has closed the stream. */
  readonly write: (bytes: string | Uint8Array) => Promise<void>
  /** Aborted when the reader closes the stream, as `head` does. */
  readonly closed: AbortSignal
}

/** Standard output. EPIPE is not an error: `closed` is aborted, and the command can end. */
export function standardOutput(stream: NodeJS.WriteStream = process.stdout): Output {
  const closed = new AbortController()
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    closed.abort(error)
  })
  return {
    isTerminal: stream.isTTY === true,
    closed: closed.signal,
    async write(bytes) {
      closed.signal.throwIfAborted()
      if (!stream.write(bytes)) await once(stream, 'drain', { signal: closed.signal })
    },
  }
}
