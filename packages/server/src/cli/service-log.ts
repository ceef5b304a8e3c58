import { isatty } from 'node:tty'
import { styleText } from 'node:util'
import { printableText } from '@mediabucket/cli/terminal'
import { type Logger, pino } from 'pino'
import { redactTokens } from '../core/token-rules.ts'
import type { Config } from '../service/config.ts'
import type { RequestLog } from '../service/start.ts'
import { LogLines, standardError } from './log-lines.ts'

export interface ServiceLog {
  readonly log: Logger
  readonly isReadable: boolean
  readonly requestLog: RequestLog
}

/** Opens the log on standard error. */
export function openServiceLog(config: Pick<Config, 'logFormat' | 'logLevel' | 'workers'>): ServiceLog {
  const isReadable = config.logFormat === 'text' || (config.logFormat === 'auto' && isatty(2))
  const formatLine = isReadable ? readableLogLines(process.stderr) : (line: string) => line
  const lines = new LogLines(standardError(config.workers > 1), (lost) => formatLine(lossLine(lost)))
  process.once('exit', () => lines.flushLast())
  const write = (line: string) => lines.write(formatLine(line))
  // An unexpected error may contain what a client sent. Request lines are redacted where they are created.
  const options = { level: config.logLevel, base: null, hooks: { streamWrite: redactTokens } }
  const stream = { write, flushSync: () => lines.flushSync() }
  const log = pino(options, stream)
  return {
    log,
    isReadable,
    // A reload changes the level.
    requestLog: { areWritten: () => log.isLevelEnabled('info'), write, dropped: () => lines.dropped },
  }
}

const lossLine = (dropped: number): string =>
  `${JSON.stringify({ level: 40, time: Date.now(), dropped, msg: 'lines of the log were dropped, because what reads or stores it was too slow or failed' })}\n`

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
export const readableLogLines =
  (stream: NodeJS.WriteStream) =>
  (text: string): string => {
    const line: Line = JSON.parse(text)
    const paint: Paint = (format, painted) => styleText(format, painted, { stream })
    const time = new Date(Number(line['time'])).toTimeString().slice(0, 8)
    const readable = line['path'] === undefined ? eventText(paint, line) : requestText(paint, line)
    return `${paint('dim', time)} ${readable}\n`
  }

type Paint = (format: Parameters<typeof styleText>[0], text: string) => string

function requestText(paint: Paint, { method, path, status, ms, msg }: Line): string {
  const isAborted = typeof status === 'number' && msg !== 'completed'
  return `${statusText(paint, status)} ${toText(method).padEnd(6)} ${toText(path)} ${paint('dim', `${toText(ms)} ms${isAborted ? ', aborted' : ''}`)}`
}

function statusText(paint: Paint, status: unknown): string {
  if (typeof status !== 'number') return paint('yellow', 'cut')
  return paint(status >= 500 ? 'red' : status >= 400 ? 'yellow' : 'green', String(status))
}

function eventText(paint: Paint, line: Line): string {
  const level = levels.find(({ least }) => Number(line['level']) >= least)
  const rest = Object.entries(line).filter(([name]) => !excluded.has(name))
  const head = [
    ...(level ? [paint(level.colour, `${level.name}:`)] : []),
    toText(line['msg']),
    ...rest.map(([name, value]) => paint('dim', `${toText(name)}=${toText(value)}`)),
  ]
  return [head.join(' '), ...causeOf(line['err']).map((text) => `    ${text}`)].join('\n')
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
