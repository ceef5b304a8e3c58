import { type ParseArgsConfig, parseArgs } from 'node:util'
import { nearestName } from './nearest-name.ts'

/** Exit codes that scripts can distinguish, in addition to 1 for all other failures and 2 for an invalid argument or setting. */
export const exitCodes = {
  accessDenied: 3,
  notFound: 4,
  incomplete: 5,
  /** As those of rsync. */
  partial: 23,
  vanished: 24,
  /** As that of rsync for its --max-delete. */
  deletesRefused: 25,
  interrupted: 130,
  terminated: 143,
} as const

/** Where a command writes. Each argument becomes one line; control characters in it are replaced. */
export interface CommandOutput {
  /** Writes a result to standard output, for scripts. */
  readonly print: (...lines: readonly string[]) => void
  /** Writes a message to standard error, for people. */
  readonly report: (...lines: readonly string[]) => void
}

/** A command that uses a service over HTTP. */
export interface ClientCommand {
  readonly help: string
  readonly run: (args: readonly string[], output: CommandOutput) => Promise<void>
}

/** What the help says about a command. */
export interface CommandDescription {
  readonly name: string
  readonly summary: string
  readonly help: string
}

/** A command about the commands. */
export interface MetaCommand {
  readonly help: string
  readonly run: (
    args: readonly string[],
    describe: () => Promise<readonly CommandDescription[]>,
  ) => Promise<string>
}

/** The arguments are invalid; the message names valid ones. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The command failed; the message contains the reason and what to do. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: number

  constructor(message: string, exitCode = 1) {
    super(message)
    this.exitCode = exitCode
  }
}

/** Parses arguments with node:util's parseArgs. Throws UsageError, which names the help of the command. */
export function parse<const T extends ParseArgsConfig>(
  command: string,
  config: T,
): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config)
  } catch (error) {
    throw new UsageError(`${reasonOf(error, config)}\nSee: mediabucket ${command} --help`)
  }
}

function reasonOf(error: unknown, { options = {} }: ParseArgsConfig): string {
  if (!(error instanceof Error)) return String(error)
  const [, incomplete, ambiguous] =
    /^Option '(?:-\w, )?(-[\w-]+)[^']*' argument( is ambiguous)?/.exec(error.message) ?? []
  if (incomplete !== undefined) {
    const named = Object.keys(options).find((name) => `-${options[name]?.short}` === incomplete)
    const hint = ` A value that begins with - needs ${named === undefined ? incomplete : `--${named}`}=VALUE.`
    return `${incomplete} needs a value.${ambiguous === undefined ? '' : hint}`
  }
  const [, unknown] = /^Unknown option '([^']*)'/.exec(error.message) ?? []
  if (unknown === undefined) return error.message
  if (unknown === '--env-file') return '--env-file FILE must be before the command.'
  const names = Object.keys(options).map((name) => `--${name}`)
  const suggestion = names.find((name) => name.startsWith(`${unknown}-`)) ?? nearestName(unknown, names)
  return `there is no option ${unknown}.${suggestion === null ? '' : ` Did you mean ${suggestion}?`}`
}

/** Seconds of each unit. */
const units: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 }

/** Seconds of a duration such as `12h`; null if the text is none. */
function secondsOf(text: string): number | null {
  const [, amount, unit = ''] = /^([1-9]\d{0,8})([smhdw])$/.exec(text) ?? []
  const seconds = Number(amount) * (units[unit] ?? Number.NaN)
  return Number.isSafeInteger(seconds) ? seconds : null
}

/** Seconds. Throws UsageError. */
export function readDuration(option: string, text: string): number {
  const seconds = secondsOf(text)
  if (seconds !== null) return seconds
  throw new UsageError(`${option} takes a duration such as 30m, 12h or 7d, not "${text}"`)
}

/** Seconds as a duration, in the largest unit of which they are a multiple. */
export function formatDuration(seconds: number): string {
  const [unit, size] = Object.entries(units).findLast(([, size]) => seconds % size === 0) ?? ['s', 1]
  return `${seconds / size}${unit}`
}

/** RFC 3339 has no later times. */
const latest = Date.UTC(10_000)

/** When something expires: in milliseconds since 1970, or after a duration in milliseconds. */
export type ExpiryOption = { readonly at: number } | { readonly after: number }

/** A duration, or a time with a time zone. Throws UsageError. */
export function readExpiry(option: string, text: string): ExpiryOption {
  const seconds = secondsOf(text)
  if (seconds !== null && Date.now() + seconds * 1_000 < latest) return { after: seconds * 1_000 }
  const at = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/.test(text) ? Date.parse(text) : Number.NaN
  if (at > Date.now() && at < latest) return { at }
  throw new UsageError(
    Number.isNaN(at)
      ? `${option} takes a duration such as 12h or 7d, or a time such as 2030-01-31T08:00:00Z, not "${text}"`
      : `${option} takes a time in the future, not "${text}"`,
  )
}
