import { errorCode } from '../core/error-code.ts'

// One system call for each line would cost as much as a listing, and a blocking write to a slow reader would delay every
// request. So lines are buffered, and writes to a full pipe are retried.

/** Characters; a fuller buffer is written at once. */
const flushThreshold = 8_192

/** Milliseconds between two writes of a buffer below the threshold. */
const flushInterval = 100

/** Milliseconds until a write to a full pipe is retried. */
const retryInterval = 5

/** Characters. With a fuller buffer the service blocks, so that no lines are lost. */
const maxBuffer = 16 * 1024 * 1024

/** Milliseconds that an exiting process waits for the reader of its log. */
const exitTimeout = 5_000

const sleeper = new Int32Array(new SharedArrayBuffer(4))

/**
 * A destination for the logger. `write` returns how many bytes it has written, or throws EAGAIN. Lines are dropped on other
 * errors, so that a full disk of the log does not stop the service. The logger calls `flushSync` after a fatal line.
 */
export function createBufferedLogLines(write: (bytes: Uint8Array) => number) {
  let lines = ''
  let rest: Uint8Array = new Uint8Array()
  let retry: NodeJS.Timeout | null = null

  /** Writes the whole buffer; false if the pipe became full. */
  function tryAll(): boolean {
    while (rest.length > 0 || lines !== '') {
      if (rest.length === 0) {
        rest = Buffer.from(lines)
        lines = ''
      }
      try {
        rest = rest.subarray(write(rest))
      } catch (error) {
        if (errorCode(error) === 'EAGAIN') return false
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
    }, retryInterval)
  }

  function flushSync() {
    const deadline = performance.now() + exitTimeout
    while (!tryAll() && performance.now() < deadline) Atomics.wait(sleeper, 0, 0, retryInterval)
  }

  setInterval(flush, flushInterval).unref()
  process.once('exit', flushSync)
  return {
    write(line: string) {
      lines += line
      if (lines.length >= maxBuffer) flushSync()
      else if (lines.length >= flushThreshold) flush()
    },
    flushSync,
  }
}
