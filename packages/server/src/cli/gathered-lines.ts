/** Characters after which gathered lines are written. */
const enough = 8_192

/** Milliseconds that a line waits at the most. */
const patience = 100

/**
 * A destination for the log that writes many lines at once: a write for each would cost as much as a listing does.
 * The logger calls `flushSync` after a fatal line; the rest is written when the process exits.
 */
export function gatheredLines(write: (lines: string) => void) {
  let lines = ''
  const flushSync = () => {
    const gathered = lines
    lines = ''
    if (gathered !== '') write(gathered)
  }
  setInterval(flushSync, patience).unref()
  process.once('exit', flushSync)
  return {
    write(line: string) {
      lines += line
      if (lines.length >= enough) flushSync()
    },
    flushSync,
  }
}
