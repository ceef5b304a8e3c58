import { writeSync } from 'node:fs'
import { type Logger, pino } from 'pino'
import type { Config } from '../config/config.ts'
import { redactTokens } from '../core/redact-tokens.ts'
import { createBufferedLogLines } from './buffered-log-lines.ts'
import { readableLogLines } from './readable-log-lines.ts'

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
