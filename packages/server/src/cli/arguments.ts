import { type ParseArgsConfig, parseArgs } from 'node:util'
import { nearestName } from '../core/nearest-name.ts'
import { UsageError } from './command.ts'

/** node:util's parseArgs, whose complaints become a UsageError that names the help. */
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
  const meant = nearestName(
    unknown,
    Object.keys(options).map((name) => `--${name}`),
  )
  return `there is no option ${unknown}.${meant === null ? '' : ` Did you mean ${meant}?`}`
}
