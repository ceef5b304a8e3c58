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
  const [, unknown] = /^Unknown option '([^']*)'/.exec(error.message) ?? []
  if (unknown === undefined) return error.message
  const suggestion = nearestName(
    unknown,
    Object.keys(options).map((name) => `--${name}`),
  )
  return `there is no option ${unknown}.${suggestion === null ? '' : ` Did you mean ${suggestion}?`}`
}
