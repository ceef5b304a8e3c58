import { styleText } from 'node:util'
import { formatCount } from '../table.ts'
import { fitEnd, formatSize, printableText } from './terminal-text.ts'

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
