import { closeSync, constants, fstatSync, openSync, write, writeSync } from 'node:fs'
import { errorCode } from '../core/faults.ts'

// One system call for each line would cost as much as a listing, and a write that waits for its reader would delay every
// request. So lines are buffered, no write waits, and lines that the buffer has no room for are dropped and counted.

/** Where lines are written. Both functions throw for bytes that can never be written. */
export interface LogDestination {
  /** Writes the first of the bytes without waiting, and returns how many; 0 if none can be written now. Call it again with the rest. */
  readonly write: (bytes: Uint8Array) => number
  /** The same in a process that exits, which runs no callbacks any more. */
  readonly writeLast: (bytes: Uint8Array) => number
}

/** Characters; a fuller buffer is written at once. */
const flushThreshold = 8_192

/** Milliseconds between two writes of a buffer below the threshold. */
const flushInterval = 100

/** Milliseconds until a write is repeated that no byte was taken of: the first time, and at most. */
const firstRetry = 5
const longestRetry = 100

/** Characters. */
const maxBuffer = 2 * 1024 * 1024

/** Milliseconds that an exiting process waits for the reader of its log. */
const exitTimeout = 2_000

const newline = 10
const sleeper = new Int32Array(new SharedArrayBuffer(4))

export interface LogLines {
  readonly write: (line: string) => void
  /** Writes what can be written without waiting. The logger calls it after a fatal line. */
  readonly flushSync: () => void
  /** Writes what is buffered when the process exits, and waits for a slow reader for a while. */
  readonly flushLast: () => void
  /** How many lines were dropped so far. */
  readonly dropped: () => number
}

/**
 * Buffers lines for a destination. While the buffer is full, further lines are dropped, until all of it has been written; then a line
 * of `describeLoss` says how many they were. Lines are also dropped where a write fails, so that a full disk of the log does not stop
 * the service.
 */
export function createLogLines(
  { write, writeLast }: LogDestination,
  describeLoss: (lines: number) => string,
): LogLines {
  let lines = ''
  /** The bytes that are being written. */
  let rest: Uint8Array = new Uint8Array()
  /** Dropped lines that no line has reported, and those that `rest` reports. */
  let unreported = 0
  let reporting = 0
  let dropped = 0
  /** Whether the last byte that was written is in the middle of a line. */
  let isMidLine = false
  let retry: NodeJS.Timeout | null = null
  let retryDelay = firstRetry
  /** Whether flushNext will be called: an idle service has no timer. */
  let isDue = false

  const buffered = () => rest.length + lines.length

  function drop(count: number): void {
    unreported += count
    dropped += count
  }

  function reportLoss(): void {
    rest = Buffer.from(`${isMidLine ? '\n' : ''}${describeLoss(unreported)}`)
    reporting = unreported
    unreported = 0
  }

  /** Drops all that is buffered, because a write failed. */
  function dropAll(): void {
    drop(reporting > 0 ? 0 : countLines(rest))
    drop(countLines(Buffer.from(lines)))
    unreported += reporting
    reporting = 0
    rest = new Uint8Array()
    lines = ''
  }

  /** Writes the whole buffer; false if the destination takes no more for now. */
  function tryAll(writeSome: LogDestination['write']): boolean {
    for (;;) {
      if (rest.length === 0) {
        if (lines !== '') {
          rest = Buffer.from(lines)
          lines = ''
        } else if (unreported > 0) reportLoss()
        else return true
      }
      try {
        const written = writeSome(rest)
        if (written === 0) return false
        isMidLine = rest[written - 1] !== newline
        rest = rest.subarray(written)
        retryDelay = firstRetry
        if (rest.length === 0) reporting = 0
      } catch {
        dropAll()
        return true
      }
    }
  }

  function flush(): void {
    if (tryAll(write) || retry !== null) return
    retry = setTimeout(() => {
      retry = null
      flush()
    }, retryDelay)
    retry.unref()
    retryDelay = Math.min(retryDelay * 2, longestRetry)
  }

  function flushNext(): void {
    isDue = false
    flush()
  }

  return {
    write(line) {
      if (unreported > 0 && buffered() === 0) reportLoss()
      if (unreported > 0 || buffered() + line.length > maxBuffer) drop(1)
      else lines += line
      // A destination that takes nothing now is tried again after a while only.
      if (retry !== null) return
      if (buffered() >= flushThreshold) flush()
      else if (!isDue) {
        isDue = true
        setTimeout(flushNext, flushInterval).unref()
      }
    },
    flushSync: flush,
    flushLast() {
      const deadline = performance.now() + exitTimeout
      while (!tryAll(writeLast) && performance.now() < deadline) Atomics.wait(sleeper, 0, 0, firstRetry)
    },
    dropped: () => dropped,
  }
}

function countLines(bytes: Uint8Array): number {
  let count = 0
  for (let at = bytes.indexOf(newline); at !== -1; at = bytes.indexOf(newline, at + 1)) count += 1
  return count
}

/** Bytes that a pipe takes whole, so that the lines of several processes do not mix (PIPE_BUF of Linux). */
const wholeWrite = 4_096

/** The first lines that fit into one write; the first line alone if it is longer. */
function wholeLines(bytes: Uint8Array): Uint8Array {
  if (bytes.length <= wholeWrite) return bytes
  const last = bytes.lastIndexOf(newline, wholeWrite - 1)
  return bytes.subarray(0, (last === -1 ? bytes.indexOf(newline) : last) + 1)
}

/** The standard error of this process. `isShared` if other processes of the service write to it too. */
export function standardError(isShared: boolean): LogDestination {
  const { write, writeLast } = fstatSync(2).isFile() ? fileDestination(2) : pipeDestination(2)
  if (!isShared) return { write, writeLast }
  return { write: (bytes) => write(wholeLines(bytes)), writeLast: (bytes) => writeLast(wholeLines(bytes)) }
}

/** For pipes, sockets and terminals. */
export function pipeDestination(fd: number): LogDestination {
  const own = reopen(fd)
  // Where it cannot be opened again, as sockets, Node makes the descriptor itself non-blocking when it opens the stream.
  if (own === null) void process.stderr
  const writeSome = (bytes: Uint8Array): number => {
    try {
      return writeSync(own ?? fd, bytes)
    } catch (error) {
      if (errorCode(error) === 'EAGAIN') return 0
      throw error
    }
  }
  return { write: writeSome, writeLast: writeSome }
}

/** Opens a descriptor of this process again, so that it is non-blocking for this process only. Null where that is not possible. */
function reopen(fd: number): number | null {
  if (process.platform !== 'linux') return null
  try {
    const own = openSync(
      `/proc/self/fd/${fd}`,
      constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY,
    )
    const [before, after] = [fstatSync(fd), fstatSync(own)]
    if (before.ino === after.ino && before.dev === after.dev) return own
    closeSync(own)
  } catch {
    // A socket, a pipe without a reader, or a file of another user.
  }
  return null
}

/**
 * For files, whose writes wait for the disk whatever the flags: a thread of libuv's pool writes, one batch at a time. A process that
 * exits waits for that thread.
 */
export function fileDestination(fd: number): LogDestination {
  let inFlight = 0
  /** Bytes of the file before the write that is in flight. */
  let sizeBefore = 0
  let result: { readonly written: number } | { readonly error: Error } | null = null

  function takeResult(): number {
    const taken = result
    result = null
    if (taken === null) return 0
    if ('error' in taken) throw taken.error
    return taken.written
  }

  return {
    write(bytes) {
      if (result !== null || inFlight > 0) return takeResult()
      inFlight = bytes.length
      sizeBefore = fstatSync(fd).size
      write(fd, bytes, (error, written) => {
        inFlight = 0
        result = error ? { error } : { written }
      })
      return 0
    },
    writeLast(bytes) {
      if (result !== null) return takeResult()
      if (inFlight === 0) return writeSync(fd, bytes)
      // No callback reports the end of the write any more, and what follows must not overtake it.
      if (fstatSync(fd).size < sizeBefore + inFlight) return 0
      const written = inFlight
      inFlight = 0
      return written
    },
  }
}
