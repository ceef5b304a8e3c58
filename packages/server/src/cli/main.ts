import { readConfig } from '../config/config.ts'
import { settings } from '../config/settings.ts'
import { nearestName } from '../core/nearest-name.ts'
import { version } from '../core/version.ts'
import { backup } from './backup.ts'
import { bucketCreate } from './bucket-create.ts'
import { bucketDelete } from './bucket-delete.ts'
import { bucketList } from './bucket-list.ts'
import { bucketSet } from './bucket-set.ts'
import { clientSettings } from './client/client-settings.ts'
import { exitCodes } from './client/explain-client-error.ts'
import { get } from './client/get.ts'
import { ls } from './client/ls.ts'
import { rm } from './client/rm.ts'
import { upload } from './client/upload.ts'
import { whoami } from './client/whoami.ts'
import { type Command, UsageError } from './command.ts'
import { incompleteExit } from './copy-report.ts'
import { exitCodeOf, explainFailure } from './explain-failure.ts'
import { fsck } from './fsck.ts'
import { restore } from './restore.ts'
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
  'bucket create': bucketCreate,
  'bucket list': bucketList,
  'bucket set': bucketSet,
  'bucket delete': bucketDelete,
  seed,
  fsck,
  backup,
  restore,
  upload,
  ls,
  get,
  rm,
  whoami,
}

/** What scripts can report apart; Ctrl-C is 130, as in shells. */
const exits: readonly (readonly [string, string])[] = [
  ['0', 'done'],
  ['1', 'failed'],
  ['2', 'the arguments or settings make no sense'],
  [`${exitCodes.refused}`, 'the service refuses the token (401), or the token may not do this (403)'],
  [`${exitCodes.missing}`, 'what was asked for is not there (404)'],
  [`${incompleteExit}`, 'the backup or restore is complete but for the bytes of some items, which it names'],
  ['130', 'interrupted, as by Ctrl-C'],
]

export async function main(args: readonly string[]): Promise<void> {
  try {
    await dispatch(args)
  } catch (error) {
    const told = explainFailure(error)
    console.error(told === null ? error : `mediabucket: ${told}`)
    process.exitCode = exitCodeOf(error)
  }
}

async function dispatch(args: readonly string[]): Promise<void> {
  const [name, rest] = split(args)
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!command) {
    if (name === 'help' && rest.length > 0) return await dispatch([...rest, '--help'])
    if (name === '' || name === 'help' || isHelp(name)) return console.log(help())
    if (name === '--version' || name === '-V') return console.log(version)
    const group = Object.keys(commands).filter((known) => known.startsWith(`${name} `))
    if (group.length > 0 && rest.some(isHelp))
      return console.log(group.map((known) => commands[known]?.help).join('\n\n'))
    throw new UsageError(unknownCommand(name, rest))
  }
  if (rest.some(isHelp)) return console.log(command.help)
  // Read when a command asks for it: those that talk to a service elsewhere do not mind a server's settings.
  let read: ReturnType<typeof readConfig> | undefined
  const settled = () => {
    if (read) return read
    read = readConfig()
    // Commands that read these settings write the data and its backups, which are for their owner alone.
    process.umask(0o077)
    return read
  }
  await command.run(rest, {
    get config() {
      return settled().config
    },
    get warnings() {
      return settled().warnings
    },
    print: (text) => console.log(text),
    report: (text) => console.error(text),
  })
}

/** With what was most likely meant: `bucket lst`, `tokn list` and `serv` are one typing error away from a command. */
function unknownCommand(name: string, [second = '']: readonly string[]): string {
  const names = Object.keys(commands)
  const group = names
    .filter((known) => known.startsWith(`${name} `))
    .map((known) => known.slice(name.length + 1))
  const inGroup = nearestName(second, group)
  const meant =
    inGroup === null
      ? (nearestName(`${name} ${second}`, names) ??
        nearestName(name, [...names, ...names.map((known) => known.split(' ', 1).join())]))
      : `${name} ${inGroup}`
  const hint = meant === null || meant === name ? '' : ` Did you mean "${meant}"?`
  return group.length > 0
    ? `"${name}" needs one of: ${group.join(', ')}.${hint} See: mediabucket help`
    : `there is no command "${name}".${hint} See: mediabucket help`
}

const isHelp = (word: string): boolean => word === '--help' || word === '-h'

/** Commands have names of one word or two. */
function split(args: readonly string[]): [string, readonly string[]] {
  const two = args.slice(0, 2).join(' ')
  return Object.hasOwn(commands, two) ? [two, args.slice(2)] : [args[0] ?? '', args.slice(1)]
}

const rows = (pairs: readonly (readonly [string, string])[]) => {
  const width = Math.max(...pairs.map(([name]) => name.length))
  return pairs.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`).join('\n')
}

const settingRows = (
  all: Readonly<Record<string, { readonly description: string; readonly defaultText: string }>>,
) =>
  rows(
    Object.entries(all).map(([name, { description, defaultText }]) => [
      name,
      `${description}${defaultText ? ` [${defaultText}]` : ''}`,
    ]),
  )

function help(): string {
  return `mediabucket: a self-hosted media bucket

Usage: mediabucket COMMAND [OPTIONS]

Commands:
${rows(Object.entries(commands).map(([name, { summary }]) => [name, summary]))}

\`mediabucket COMMAND --help\` tells more of one, \`mediabucket --version\` the version.

Exit codes:
${rows(exits)}

Settings of the service (environment variables, with their defaults):
${settingRows(settings)}

Settings of upload, ls, get, rm and whoami, which talk to a service anywhere:
${settingRows(clientSettings)}`
}
