import { once } from 'node:events'
import { jsonLine, printableText } from './terminal-text.ts'

/**
 * The destination of results. Texts of a service may contain anything; `lines` and `json` print them so that they cannot control
 * a terminal. Each function resolves when more can be written, and rejects after the reader has closed the stream.
 */
export interface Output {
  readonly isTerminal: boolean
  /** Each text, or each list of cells separated by tabs, becomes one line; control characters in it are replaced. */
  readonly lines: (rows: readonly (string | readonly string[])[]) => Promise<void>
  /** Each value becomes one line of JSON. */
  readonly json: (values: readonly unknown[]) => Promise<void>
  /** Content, unchanged. */
  readonly bytes: (content: string | Uint8Array) => Promise<void>
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
  async function bytes(content: string | Uint8Array): Promise<void> {
    closed.signal.throwIfAborted()
    if (!stream.write(content)) await once(stream, 'drain', { signal: closed.signal })
  }
  return {
    isTerminal: stream.isTTY === true,
    closed: closed.signal,
    bytes,
    lines: (rows) => bytes(rows.map((row) => `${[row].flat().map(printableText).join('\t')}\n`).join('')),
    json: (values) => bytes(values.map((value) => `${jsonLine(value)}\n`).join('')),
  }
}
