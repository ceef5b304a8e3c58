import { styleText } from 'node:util'
import { formatCount } from '../table.ts'
import { fitEnd, formatSize, printableText } from './terminal-text.ts'

/** The progress of one task, or of all together. */
export interface Progress {
  readonly name: string
  readonly done: number
  readonly total: number
  /** What is counted; bytes if absent. */
  readonly unit?: 'items'
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
      const text = fitting.map((bar) => `${drawBar(bar, terminal.columns || 80)}\n`).join('')
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

function drawBar({ name, done, total, unit }: Progress, columns: number): string {
  const share = total === 0 ? 1 : Math.min(1, done / total)
  const width = Math.min(30, Math.max(0, columns - 40))
  const full = Math.round(share * width)
  // styleText respects NO_COLOR and FORCE_COLOR.
  const bar = styleText('cyan', '█'.repeat(full), { stream: process.stderr }) + '░'.repeat(width - full)
  const size = unit === 'items' ? `${done} of ${formatCount(total, 'item')}` : formatSize(total)
  const figures = `${`${Math.floor(share * 100)}%`.padStart(5)} ${size.padStart(9)}`
  // One column stays free: some terminals wrap after the last one.
  const room = columns - width - figures.length - 2
  return room < 1 ? figures.slice(0, columns - 1) : `${fitEnd(printableText(name), room)} ${bar}${figures}`
}
