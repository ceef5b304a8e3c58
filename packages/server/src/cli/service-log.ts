import { writeSync } from 'node:fs'
import { styleText } from 'node:util'
import { type Logger, pino } from 'pino'
import { errorCode } from '../core/faults.ts'
import { redactTokens } from '../core/tokens.ts'
import type { Config } from '../service/config.ts'
import { printableText } from './terminal.ts'

/** Bytes that a pipe takes whole, so that the lines of several processes do not mix (PIPE_BUF of Linux). */
const wholeWrite = 4_096

export interface ServiceLog {
  readonly log: Logger
  readonly isReadable: boolean
  /** Writes the line of a request. */
  readonly writeLine: (line: string) => void
}

/** Opens the log on standard error. */
export function openServiceLog(config: Pick<Config, 'logFormat' | 'logLevel' | 'workers'>): ServiceLog {
  const isReadable = config.logFormat === 'text' || (config.logFormat === 'auto' && process.stderr.isTTY)
  const isShared = config.workers > 1
  const buffered = createBufferedLogLines((bytes) => writeSync(2, isShared ? wholeLines(bytes) : bytes))
  const lines = isReadable ? readable(buffered) : buffered
  // An unexpected error may contain what a client sent. Request lines are redacted where they are created.
  const options = { level: config.logLevel, base: null, hooks: { streamWrite: redactTokens } }
  const log = pino(options, lines)
  return { log, isReadable, writeLine: log.isLevelEnabled('info') ? lines.write : () => undefined }
}

/** The first lines that fit into one write; the first line alone if it is longer. */
function wholeLines(bytes: Uint8Array): Uint8Array {
  if (bytes.length <= wholeWrite) return bytes
  const newline = 10
  const last = bytes.lastIndexOf(newline, wholeWrite - 1)
  return bytes.subarray(0, (last === -1 ? bytes.indexOf(newline) : last) + 1)
}

/** Wraps a destination: converts lines of JSON to readable text. */
function readable({ write, flushSync }: ReturnType<typeof createBufferedLogLines>) {
  const toReadable = readableLogLines(process.stderr)
  return { write: (line: string) => write(toReadable(line)), flushSync }
}

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
  /** Whether flushNext will be called: an idle service has no timer. */
  let isDue = false

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

  function flushNext() {
    isDue = false
    flush()
  }

  function flushSync() {
    const deadline = performance.now() + exitTimeout
    while (!tryAll() && performance.now() < deadline) Atomics.wait(sleeper, 0, 0, retryInterval)
  }

  process.once('exit', flushSync)
  return {
    write(line: string) {
      lines += line
      if (lines.length >= maxBuffer) flushSync()
      else if (lines.length >= flushThreshold) flush()
      else if (!isDue) {
        isDue = true
        setTimeout(flushNext, flushInterval).unref()
      }
    },
    flushSync,
  }
}

/** A line of the log as written by the logger, in JSON (docs/interface.md O3). */
type Line = Readonly<Record<string, unknown>>

/** The levels that are printed, with their colours. */
const levels = [
  { least: 60, name: 'fatal', colour: 'red' },
  { least: 50, name: 'error', colour: 'red' },
  { least: 40, name: 'warning', colour: 'yellow' },
] as const

/** Members that are printed separately or not at all. */
const excluded = new Set(['level', 'time', 'msg', 'err', 'requestId'])

/**
 * Converts lines of the log to readable text (docs/interface.md O10), in colour if `stream` is a terminal and NO_COLOR is not
 * set. Control characters are replaced, so that requests cannot control the terminal.
 */
export function readableLogLines(stream: NodeJS.WriteStream): (line: string) => string {
  const paint = (format: Parameters<typeof styleText>[0], text: string) => styleText(format, text, { stream })

  function statusOf(status: unknown): string {
    if (typeof status !== 'number') return paint('yellow', 'cut')
    return paint(status >= 500 ? 'red' : status >= 400 ? 'yellow' : 'green', String(status))
  }

  function request({ method, path, status, ms, msg }: Line): string {
    const isAborted = typeof status === 'number' && msg !== 'completed'
    return `${statusOf(status)} ${toText(method).padEnd(6)} ${toText(path)} ${paint('dim', `${toText(ms)} ms${isAborted ? ', aborted' : ''}`)}`
  }

  function event(line: Line): string {
    const level = levels.find(({ least }) => Number(line['level']) >= least)
    const rest = Object.entries(line).filter(([name]) => !excluded.has(name))
    const head = [
      ...(level ? [paint(level.colour, `${level.name}:`)] : []),
      toText(line['msg']),
      ...rest.map(([name, value]) => paint('dim', `${toText(name)}=${toText(value)}`)),
    ]
    return [head.join(' '), ...causeOf(line['err']).map((text) => `    ${text}`)].join('\n')
  }

  return (text) => {
    const line: Line = JSON.parse(text)
    const time = new Date(Number(line['time'])).toTimeString().slice(0, 8)
    return `${paint('dim', time)} ${line['path'] === undefined ? event(line) : request(line)}\n`
  }
}

/** On one line, without control characters. */
const toText = (value: unknown): string =>
  printableText(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))

/** The stack of an error, or its message. */
function causeOf(error: unknown): string[] {
  if (typeof error !== 'object' || error === null) return []
  const text = 'stack' in error ? error.stack : 'message' in error ? error.message : null
  return typeof text === 'string' ? text.split('\n').map((line) => toText(line.trimEnd())) : []
}
