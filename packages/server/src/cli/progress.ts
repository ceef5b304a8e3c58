/** A bar on a terminal, nothing elsewhere: logs and mails of scheduled runs hold results alone. */
export interface Progress {
  /** `of` is an estimate: what is formatCount may grow or shrink meanwhile. */
  show(done: number, of: number): void
  /** Takes the bar away. */
  end(): void
}

const width = 30
/** More often nobody sees. Milliseconds. */
const pace = 100

export function showProgress(label: string): Progress {
  const terminal = process.stderr
  if (!terminal.isTTY) return { show() {}, end() {} }
  let last = Number.NEGATIVE_INFINITY
  const clear = () => terminal.write('\r\x1b[K')

  return {
    show(done, of) {
      const now = performance.now()
      if (now - last < pace) return
      last = now
      const share = of === 0 ? 1 : Math.min(1, done / of)
      const full = Math.round(share * width)
      const bar = '█'.repeat(full) + '░'.repeat(width - full)
      clear()
      terminal.write(`${label} ${bar} ${Math.floor(share * 100)} % (${done} of ${of})`)
    },
    end() {
      if (last > 0) clear()
    },
  }
}
