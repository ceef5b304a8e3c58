import { once } from 'node:events'
import { UsageError } from '../command.ts'
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

/** How a command prints items: as lines, as lines that end with NUL, or as objects. */
export type LineFormat = 'lines' | 'null' | 'json'

export const formatOptions = {
  json: { type: 'boolean', default: false },
  null: { type: 'boolean', short: '0', default: false },
} as const

/** Throws UsageError. */
export function readFormat(values: { readonly json: boolean; readonly null: boolean }): LineFormat {
  if (values.json && values.null) throw new UsageError('Use --json or -0, not both')
  return values.json ? 'json' : values.null ? 'null' : 'lines'
}

/** Prints an item and the path of its file, which `-0` leaves unchanged for programs. */
export async function printItem(
  output: Output,
  format: LineFormat,
  { id, url, size }: { readonly id: string; readonly url: string; readonly size: number },
  path: string,
  more: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  if (format === 'json') return await output.json([{ id, url, path, size, ...more }])
  if (format === 'null') return await output.bytes(`${printableText(url)}\t${path}\0`)
  await output.lines([[url, path]])
}
