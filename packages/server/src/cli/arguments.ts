import { type ParseArgsConfig, parseArgs } from 'node:util'
import { nearestName } from '../core/nearest-name.ts'
import { UsageError } from './command.ts'

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
