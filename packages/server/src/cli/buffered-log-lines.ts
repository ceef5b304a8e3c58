// A write to the operating system for each line of the log would cost as much as a listing does, and a write that waits
// for a slow reader of the log would keep every request waiting. So lines are gathered, and what a full pipe does not
// take is tried again later.

/** Characters after which gathered lines are written. */
const enough = 8_192

/** Milliseconds that a line waits at the most, where the log is read as fast as it is written. */
const patience = 100

/** Milliseconds until a pipe that was full is tried again. */
const pause = 5

/** Characters that may wait for a reader. Beyond them the service waits too, rather than lose lines. */
const most = 16 * 1024 * 1024

/** Milliseconds for which a process that ends waits for the reader of its log. */
const lastPatience = 5_000

const sleeper = new Int32Array(new SharedArrayBuffer(4))

/**
 * A destination for the log. `write` takes bytes and tells how many it took, or throws EAGAIN. What cannot be written
 * at all is dropped: a full disk under the log stops nobody. The logger calls `flushSync` after a fatal line.
 */
export function createBufferedLogLines(write: (bytes: Uint8Array) => number) {
  let lines = ''
  let rest: Uint8Array = new Uint8Array()
  let retry: NodeJS.Timeout | null = null

  /** Writes what there is; false when the pipe is full before that. */
  function tryAll(): boolean {
    while (rest.length > 0 || lines !== '') {
      if (rest.length === 0) {
        rest = Buffer.from(lines)
        lines = ''
      }
      try {
        rest = rest.subarray(write(rest))
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return false
        rest = new Uint8Array()
      }
    }
    return true
  }

  function flush() {
    if (retry !== null || tryAll()) return
    retry = setTimeout(() => {
      retry = null
      flush()
    }, pause)
  }

  function flushSync() {
    const deadline = performance.now() + lastPatience
    while (!tryAll() && performance.now() < deadline) Atomics.wait(sleeper, 0, 0, pause)
  }

  setInterval(flush, patience).unref()
  process.once('exit', flushSync)
  return {
    write(line: string) {
      lines += line
      if (lines.length >= most) flushSync()
      else if (lines.length >= enough) flush()
    },
    flushSync,
  }
}
