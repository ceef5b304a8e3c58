import { ConfigError, readConfig, settings } from '../config.ts'
import { Fault } from '../core/fault.ts'
import { DataLockedError } from '../engines.ts'
import { bucketList } from './bucket-list.ts'
import { bucketSet } from './bucket-set.ts'
import { type Command, CommandError, UsageError } from './command.ts'
import { seed } from './seed.ts'
import { serve } from './serve.ts'
import { tokenCreate } from './token-create.ts'
import { tokenList } from './token-list.ts'
import { tokenRevoke } from './token-revoke.ts'

const commands: Readonly<Record<string, Command>> = {
  serve,
  'token create': tokenCreate,
  'token list': tokenList,
  'token revoke': tokenRevoke,
  'bucket list': bucketList,
  'bucket set': bucketSet,
  seed,
}

/** Exit codes: 0 done, 1 failed, 2 the arguments or settings make no sense. */
export async function main(args: readonly string[]): Promise<void> {
  try {
    await dispatch(args)
  } catch (error) {
    const told = isTold(error)
    console.error(told ? `mediabucket: ${told}` : error)
    process.exitCode = error instanceof UsageError || error instanceof ConfigError ? 2 : 1
  }
}

async function dispatch(args: readonly string[]): Promise<void> {
  const [name, rest] = split(args)
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!command) {
    if (name === '' || name === 'help' || isHelp(name)) return console.log(help())
    const group = Object.keys(commands).filter((known) => known.startsWith(`${name} `))
    if (rest.some(isHelp)) return console.log(group.map((known) => commands[known]?.help).join('\n\n'))
    throw new UsageError(
      group.length > 0
        ? `"${name}" needs one of: ${group.map((known) => known.slice(name.length + 1)).join(', ')}. See: mediabucket help`
        : `there is no command "${name}". See: mediabucket help`,
    )
  }
  if (rest.some(isHelp)) return console.log(command.help)
  const { config, warnings } = readConfig()
  await command.run(rest, {
    config,
    warnings,
    print: (text) => console.log(text),
    tell: (text) => console.error(text),
  })
}

const isHelp = (word: string): boolean => word === '--help' || word === '-h'

/** Commands have names of one word or two. */
function split(args: readonly string[]): [string, readonly string[]] {
  const two = args.slice(0, 2).join(' ')
  return Object.hasOwn(commands, two) ? [two, args.slice(2)] : [args[0] ?? '', args.slice(1)]
}

/** The message of an error that was foreseen; whatever else is thrown is shown whole. */
function isTold(error: unknown): string | null {
  const told = [UsageError, CommandError, ConfigError, DataLockedError, Fault].some(
    (kind) => error instanceof kind,
  )
  if (told && error instanceof Error) return error.message
  const call = error instanceof Error && 'syscall' in error ? String(error.syscall) : ''
  return error instanceof Error && Object.hasOwn(remedies, call)
    ? `${error.message}. ${remedies[call]}`
    : null
}

/** What to do when one of these calls of the system fails. */
const remedies: Readonly<Record<string, string>> = {
  listen: 'Set MEDIABUCKET_HOST and MEDIABUCKET_PORT to an address that is free, or stop what listens there.',
  getaddrinfo: 'Set MEDIABUCKET_HOST to an address of this machine.',
  mkdir: 'Set MEDIABUCKET_DATA to a directory that this user may write to.',
}

function help(): string {
  const rows = (pairs: readonly (readonly [string, string])[]) => {
    const width = Math.max(...pairs.map(([name]) => name.length))
    return pairs.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`).join('\n')
  }
  return `mediabucket: a self-hosted media bucket

Usage: mediabucket COMMAND [OPTIONS]

Commands:
${rows(Object.entries(commands).map(([name, { summary }]) => [name, summary]))}

\`mediabucket COMMAND --help\` tells more of one.

Settings (environment variables, with their defaults):
${rows(Object.entries(settings).map(([name, { about, fallback }]) => [name, `${about}${fallback ? ` [${fallback}]` : ''}`]))}`
}
