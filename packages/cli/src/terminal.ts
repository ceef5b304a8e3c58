import { once } from 'node:events'
import { styleText } from 'node:util'
import { UsageError } from './command.ts'

const units = ['B', 'kB', 'MB', 'GB', 'TB']

/** Bytes in decimal units: `512 B`, `1.5 MB`. */
export function formatSize(bytes: number): string {
  // From 999.95 on, rounding to one decimal would give 1000 of the unit.
  const power = units.findIndex((_, at) => bytes < (at === 0 ? 1000 : 999.95 * 1000 ** at))
  const at = power === -1 ? units.length - 1 : power
  return `${at === 0 ? bytes : (bytes / 1000 ** at).toFixed(1)} ${units[at]}`
}

/** Characters that move the cursor of a terminal, change the text direction or break a line. */
const controls = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

/** Replaces control characters, so that the text is one line and cannot control the terminal. */
export const printableText = (text: string): string => text.replace(controls, '\ufffd')

/** The same for a text of several lines. */
export const printableLines = (text: string): string => text.split('\n').map(printableText).join('\n')

/** JSON on one line. Control characters are escaped, which changes no value. */
export const jsonLine = (value: unknown): string =>
  JSON.stringify(value).replace(controls, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

const isWide = (char: string): boolean =>
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u.test(
    char,
  )

/** The width of the text in columns of a terminal. */
export const textWidth = (text: string): number =>
  [...text].reduce((sum, char) => sum + (isWide(char) ? 2 : 1), 0)

/** Fits the text to exactly this width: pads it with spaces, or cuts its beginning, because the end of a path is more specific. */
export function fitEnd(text: string, columns: number): string {
  let width = 0
  const kept: string[] = []
  const chars = [...text]
  for (const [index, char] of chars.toReversed().entries()) {
    const wide = isWide(char) ? 2 : 1
    const isLast = index === chars.length - 1
    if (width + wide > columns - (isLast ? 0 : 1)) {
      kept.push('…')
      width += 1
      break
    }
    kept.push(char)
    width += wide
  }
  return kept.reverse().join('') + ' '.repeat(Math.max(0, columns - width))
}

/** One column of a table. */
export interface Column<Row> {
  readonly header: string
  readonly cell: (row: Row) => string
  /** For numbers. */
  readonly alignRight?: boolean
}

/** The lines of a table. Pass `header` only on a terminal, because scripts parse the lines. */
export function table<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { header }: { readonly header: boolean },
): string[] {
  const cells = rows.map((row) => columns.map(({ cell }) => cell(row)))
  const right = new Set([...columns.keys()].filter((column) => columns[column]?.alignRight))
  return alignColumns(header ? [columns.map(({ header }) => header), ...cells] : cells, right)
}

/** Pads each cell to the widest of its column. `right` contains the columns that are aligned right. */
export function alignColumns(
  cells: readonly (readonly string[])[],
  right: ReadonlySet<number> = new Set(),
): string[] {
  const rows = cells.map((row) => row.map(printableText))
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => textWidth(row[column] ?? ''))),
  )
  const pad = (cell: string, column: number): string => {
    const space = ' '.repeat((widths[column] ?? 0) - textWidth(cell))
    return right.has(column) ? space + cell : cell + space
  }
  return rows.map((row) => row.map(pad).join('  ').trimEnd())
}

/** `1 item`, `2 items`, `0 items`. */
export const formatCount = (count: number, singular: string, plural = `${singular}s`): string =>
  `${count} ${count === 1 ? singular : plural}`

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

/** Standard output. If nothing more can be written, `closed` is aborted, and the command can end; `reportLostOutput` reports errors. */
export function standardOutput(stream: NodeJS.WriteStream = process.stdout): Output {
  const closed = new AbortController()
  stream.on('error', (error) => closed.abort(error))
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

/** Makes a command fail whose results cannot be written, for example to a full disk. A reader that closes the stream early, as `head` does, has enough. */
export function reportLostOutput(stream: NodeJS.WriteStream = process.stdout): void {
  if (!stream.listeners('error').includes(failOnLostOutput)) stream.on('error', failOnLostOutput)
}

function failOnLostOutput({ code }: NodeJS.ErrnoException): void {
  if (code === 'EPIPE') return
  process.exitCode ||= 1
  console.error(
    `mediabucket: a part of the output is lost, because standard output cannot be written (${code})`,
  )
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

/** The progress of one task, or of all together. */
export interface Progress {
  readonly name: string
  readonly done: number
  /** Null if it is unknown. */
  readonly total: number | null
  /** What is counted; bytes if absent. */
  readonly unit?: 'items'
  /** Bytes of `done` that were not transferred now, which the speed leaves out. Only a bar with them shows speed and time left. */
  readonly skipped?: number
}

/** The last lines of a terminal, redrawn in place. */
export interface ProgressBars {
  /** Draws the bars, at most every 80 ms. */
  readonly show: (bars: readonly Progress[]) => void
  /** Erases the bars, so that other lines can be written. */
  readonly clear: () => void
}

/** The part of a terminal stream that the bars use. */
export interface Terminal {
  readonly columns?: number | undefined
  readonly rows?: number | undefined
  readonly isTTY?: boolean | undefined
  readonly write: (text: string) => unknown
}

/** Milliseconds between two redraws. */
const redrawInterval = 80

/**
 * Draws bars on a terminal, and nothing elsewhere. There is no timer that would keep the process alive. (cli-progress is larger,
 * and writes lines of its own if there is no terminal.)
 */
export function createProgressBars(
  terminal: Terminal,
  now: () => number = () => performance.now(),
): ProgressBars {
  if (!terminal.isTTY) return { show() {}, clear() {} }
  const speedOf = measureSpeed(now)
  let lines = 0
  let last = Number.NEGATIVE_INFINITY
  function clear(): void {
    if (lines > 0) terminal.write(`\x1b[${lines}F\x1b[J`)
    lines = 0
    last = Number.NEGATIVE_INFINITY
  }
  return {
    clear,
    show(bars) {
      if (now() - last < redrawInterval) return
      // Lines that do not fit would scroll away and could not be erased. The last bar is the total.
      const fitting = bars.slice(-Math.max(1, (terminal.rows ?? 24) - 1))
      const columns = terminal.columns || 80
      // Beside the bar are the name and the size, and the speed with the time left.
      const width = Math.min(30, Math.max(0, columns - (bars.some(hasSpeed) ? 62 : 40)))
      const text = fitting.map((bar) => `${drawBar(bar, { columns, width, speedOf })}\n`).join('')
      clear()
      terminal.write(text)
      lines = fitting.length
      last = now()
    },
  }
}

/** One bar that counts items, for `onItem` callbacks: `of` is an estimate and may change. */
export function createItemProgress(name: string): { show(done: number, of: number): void; end(): void } {
  const bars = createProgressBars(process.stderr)
  return {
    show: (done, of) => bars.show([{ name, done, total: of, unit: 'items' }]),
    end: bars.clear,
  }
}

/** Milliseconds over which the speed is averaged. */
const speedWindow = 10_000

/** Bytes per second of a bar in the last seconds; null in the first one. */
function measureSpeed(now: () => number): (bar: Progress) => number | null {
  const samples: { readonly at: number; readonly sent: number }[] = []
  return ({ done, skipped = 0 }) => {
    const sample = { at: now(), sent: done - skipped }
    samples.push(sample)
    while (samples.length > 2 && sample.at - (samples[1]?.at ?? 0) >= speedWindow) samples.shift()
    const [first = sample] = samples
    const elapsed = sample.at - first.at
    return elapsed < 1_000 ? null : Math.max(0, ((sample.sent - first.sent) / elapsed) * 1_000)
  }
}

/** `12.5 MB/s, 1:04 left` */
function describeSpeed({ done, total }: Progress, speed: number): string {
  const seconds = Math.ceil(((total ?? Number.NaN) - done) / speed)
  if (!(seconds < 100 * 3_600)) return `${formatSize(Math.round(speed))}/s`
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60]
  const two = (number: number) => `${number}`.padStart(2, '0')
  const left = hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`
  return `${formatSize(Math.round(speed))}/s, ${left} left`
}

const hasSpeed = ({ skipped }: Progress): boolean => skipped !== undefined

interface Layout {
  /** Of the terminal. */
  readonly columns: number
  /** Of the bar. */
  readonly width: number
  readonly speedOf: (bar: Progress) => number | null
}

function drawBar(progress: Progress, { columns, width, speedOf }: Layout): string {
  const { name, done, total, unit } = progress
  const share = total === null ? 0 : total === 0 ? 1 : Math.min(1, done / total)
  const full = Math.round(share * width)
  // styleText respects NO_COLOR and FORCE_COLOR.
  const bar = styleText('cyan', '█'.repeat(full), { stream: process.stderr }) + '░'.repeat(width - full)
  const size =
    unit === 'items' ? `${done} of ${formatCount(total ?? done, 'item')}` : formatSize(total ?? done)
  const percent = total === null ? '' : `${Math.floor(share * 100)}%`
  const speed = hasSpeed(progress) ? speedOf(progress) : null
  const text = speed === null || columns < 70 ? '' : `  ${describeSpeed(progress, speed)}`
  const figures = `${percent.padStart(5)} ${size.padStart(9)}${text}`
  // One column stays free: some terminals wrap after the last one.
  const room = columns - width - figures.length - 2
  return room < 1 ? figures.slice(0, columns - 1) : `${fitEnd(printableText(name), room)} ${bar}${figures}`
}
