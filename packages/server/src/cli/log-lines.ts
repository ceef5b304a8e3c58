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

/**
 * Buffers lines for a destination. While the buffer is full, further lines are dropped, until all of it has been written; then a line
 * of `describeLoss` says how many they were. Lines are also dropped where a write fails, so that a full disk of the log does not stop
 * the service.
 */
export class LogLines {
  readonly #destination: LogDestination
  readonly #describeLoss: (lines: number) => string
  #lines = ''
  /** The bytes that are being written. */
  #rest: Uint8Array = new Uint8Array()
  /** Dropped lines that no line has reported, and those that `#rest` reports. */
  #unreported = 0
  #reporting = 0
  #dropped = 0
  /** Whether the last byte that was written is in the middle of a line. */
  #isMidLine = false
  #retry: NodeJS.Timeout | null = null
  #retryDelay = firstRetry
  /** Whether a flush is due: an idle service has no timer. */
  #isDue = false

  constructor(destination: LogDestination, describeLoss: (lines: number) => string) {
    this.#destination = destination
    this.#describeLoss = describeLoss
  }

  /** How many lines were dropped so far. */
  get dropped(): number {
    return this.#dropped
  }

  write(line: string): void {
    if (this.#unreported > 0 && this.#buffered() === 0) this.#reportLoss()
    if (this.#unreported > 0 || this.#buffered() + line.length > maxBuffer) this.#drop(1)
    else this.#lines += line
    // A destination that takes nothing now is tried again after a while only.
    if (this.#retry !== null) return
    if (this.#buffered() >= flushThreshold) this.flushSync()
    else if (!this.#isDue) {
      this.#isDue = true
      setTimeout(() => {
        this.#isDue = false
        this.flushSync()
      }, flushInterval).unref()
    }
  }

  /** Writes what can be written without waiting. The logger calls it after a fatal line. */
  flushSync(): void {
    if (this.#tryAll((bytes) => this.#destination.write(bytes)) || this.#retry !== null) return
    this.#retry = setTimeout(() => {
      this.#retry = null
      this.flushSync()
    }, this.#retryDelay)
    this.#retry.unref()
    this.#retryDelay = Math.min(this.#retryDelay * 2, longestRetry)
  }

  /** Writes what is buffered when the process exits, and waits for a slow reader for a while. */
  flushLast(): void {
    const deadline = performance.now() + exitTimeout
    while (!this.#tryAll((bytes) => this.#destination.writeLast(bytes)) && performance.now() < deadline)
      Atomics.wait(sleeper, 0, 0, firstRetry)
  }

  /** Writes the whole buffer; false if the destination takes no more for now. */
  #tryAll(writeSome: LogDestination['write']): boolean {
    for (;;) {
      if (this.#rest.length === 0) {
        if (this.#lines !== '') {
          this.#rest = Buffer.from(this.#lines)
          this.#lines = ''
        } else if (this.#unreported > 0) this.#reportLoss()
        else return true
      }
      try {
        const written = writeSome(this.#rest)
        if (written === 0) return false
        this.#isMidLine = this.#rest[written - 1] !== newline
        this.#rest = this.#rest.subarray(written)
        this.#retryDelay = firstRetry
        if (this.#rest.length === 0) this.#reporting = 0
      } catch {
        this.#dropAll()
        return true
      }
    }
  }

  /** Drops all that is buffered, because a write failed. */
  #dropAll(): void {
    this.#drop(this.#reporting > 0 ? 0 : countLines(this.#rest))
    this.#drop(countLines(Buffer.from(this.#lines)))
    this.#unreported += this.#reporting
    this.#reporting = 0
    this.#rest = new Uint8Array()
    this.#lines = ''
  }

  #drop(count: number): void {
    this.#unreported += count
    this.#dropped += count
  }

  #reportLoss(): void {
    this.#rest = Buffer.from(`${this.#isMidLine ? '\n' : ''}${this.#describeLoss(this.#unreported)}`)
    this.#reporting = this.#unreported
    this.#unreported = 0
  }

  #buffered(): number {
    return this.#rest.length + this.#lines.length
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
