import { styleText } from 'node:util'
import { fitEnd, formatSize, printableText } from './terminal-text.ts'

/** How far one thing, or all of them together, has come. Bytes. */
export interface Progress {
  readonly name: string
  readonly done: number
  readonly total: number
}

/** The lines at the bottom of a terminal that move. */
export interface ProgressBars {
  /** Shows these, unless it did a moment ago. */
  readonly show: (bars: readonly Progress[]) => void
  /** Takes the lines away, to let others through or for good. */
  readonly clear: () => void
}

/** A terminal, as far as the bars need it. */
export interface Terminal {
  readonly columns?: number | undefined
  readonly rows?: number | undefined
  readonly isTTY?: boolean | undefined
  readonly write: (text: string) => unknown
}

/** More often nobody sees. Milliseconds. */
const pace = 80

/**
 * Bars on a terminal, nothing elsewhere. Drawn when there is news, so no timer keeps the process alive. (Of our own:
 * cli-progress is larger than this, and writes its own lines where there is no terminal.)
 */
export function progressBars(terminal: Terminal, now: () => number = () => performance.now()): ProgressBars {
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
      if (now() - last < pace) return
      // What does not fit would scroll away and could not be taken back; the last bar is that of them all.
      const fitting = bars.slice(-Math.max(1, (terminal.rows ?? 24) - 1))
      const text = fitting.map((bar) => `${drawBar(bar, terminal.columns || 80)}\n`).join('')
      clear()
      terminal.write(text)
      lines = fitting.length
      last = now()
    },
  }
}

function drawBar({ name, done, total }: Progress, columns: number): string {
  const share = total === 0 ? 1 : Math.min(1, done / total)
  const width = Math.min(30, Math.max(0, columns - 40))
  const full = Math.round(share * width)
  // Respects NO_COLOR, and FORCE_COLOR, by itself.
  const bar = styleText('cyan', '█'.repeat(full), { stream: process.stderr }) + '░'.repeat(width - full)
  const figures = `${`${Math.floor(share * 100)}%`.padStart(5)} ${formatSize(total).padStart(9)}`
  // One column stays free: in the last one some terminals break the line.
  const room = columns - width - figures.length - 2
  return room < 1 ? figures.slice(0, columns - 1) : `${fitEnd(printableText(name), room)} ${bar}${figures}`
}
