/** A bar on a terminal; elsewhere a line of its own at each tenth. */
export interface Progress {
  /** `of` is an estimate: what is counted may grow or shrink meanwhile. */
  show(done: number, of: number): void
  /** Takes the bar away. */
  end(): void
}

const width = 30
/** More often nobody sees. Milliseconds. */
const pace = 100

export function showProgress(label: string, tell: (text: string) => void): Progress {
  const terminal = process.stderr
  let last = Number.NEGATIVE_INFINITY
  let tenth = 0
  const clear = () => terminal.write('\r\x1b[K')

  return {
    show(done, of) {
      const share = of === 0 ? 1 : Math.min(1, done / of)
      if (terminal.isTTY) {
        const now = performance.now()
        if (now - last < pace) return
        last = now
        const full = Math.round(share * width)
        const bar = '█'.repeat(full) + '░'.repeat(width - full)
        clear()
        terminal.write(`${label} ${bar} ${Math.floor(share * 100)} % (${done} of ${of})`)
      } else if (Math.floor(share * 10) > tenth) {
        tenth = Math.floor(share * 10)
        tell(`${label}: ${done} of ${of}`)
      }
    },
    end() {
      if (terminal.isTTY && last > 0) clear()
    },
  }
}
