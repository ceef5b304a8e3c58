import { readConfig } from '../config/config.ts'
import { nearestName } from '../core/nearest-name.ts'
import { version } from '../core/version.ts'
import { audit } from './audit.ts'
import { backup } from './backup.ts'
import { bucketCreate } from './bucket-create.ts'
import { bucketDelete } from './bucket-delete.ts'
import { bucketList } from './bucket-list.ts'
import { bucketSet } from './bucket-set.ts'
import { edit } from './client/edit.ts'
import { get } from './client/get.ts'
import { link } from './client/link.ts'
import { ls } from './client/ls.ts'
import { rm } from './client/rm.ts'
import { trashEmpty } from './client/trash-empty.ts'
import { trashList } from './client/trash-list.ts'
import { trashRestore } from './client/trash-restore.ts'
import { upload } from './client/upload.ts'
import { whoami } from './client/whoami.ts'
import { type Command, UsageError } from './command.ts'
import { exitCodeOf, explainFailure } from './explain-failure.ts'
import { fsck } from './fsck.ts'
import { type HelpGroup, help, settingsHelp } from './help.ts'
import { keysList } from './keys-list.ts'
import { keysRemove } from './keys-remove.ts'
import { keysRotate } from './keys-rotate.ts'
import { migrate } from './migrate.ts'
import { restore } from './restore.ts'
import { seed } from './seed.ts'
import { serve } from './serve.ts'
import { tokenCreate } from './token-create.ts'
import { tokenList } from './token-list.ts'
import { tokenRevoke } from './token-revoke.ts'
import { vacuum } from './vacuum.ts'

const service = { serve, fsck, backup, restore, migrate, vacuum, audit, seed }

const access = {
  'bucket create': bucketCreate,
  'bucket list': bucketList,
  'bucket set': bucketSet,
  'bucket delete': bucketDelete,
  'token create': tokenCreate,
  'token list': tokenList,
  'token revoke': tokenRevoke,
  'keys list': keysList,
  'keys rotate': keysRotate,
  'keys remove': keysRemove,
}

const files = {
  upload,
  ls,
  get,
  link,
  edit,
  rm,
  'trash list': trashList,
  'trash restore': trashRestore,
  'trash empty': trashEmpty,
  whoami,
}

const commands: Readonly<Record<string, Command>> = { ...service, ...access, ...files }

/** The commands in the help. */
const groups: readonly HelpGroup[] = [
  { title: 'The service and its data', commands: service },
  { title: 'Buckets, tokens and keys, also while the service is running', commands: access },
  { title: 'The files of a bucket, over HTTP with a token', commands: files },
]

export async function main(args: readonly string[]): Promise<void> {
  try {
    await dispatch(args)
  } catch (error) {
    const explained = explainFailure(error)
    console.error(explained === null ? error : `mediabucket: ${explained}`)
    process.exitCode = exitCodeOf(error)
  }
}

async function dispatch(args: readonly string[]): Promise<void> {
  const [name, rest] = split(args)
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!command) {
    if (name === 'help' && rest.join(' ') === 'settings') return console.log(settingsHelp())
    if (name === 'help' && rest.length > 0) return await dispatch([...rest, '--help'])
    if (name === '' || name === 'help' || isHelp(name)) return console.log(help(groups))
    if (name === '--version' || name === '-V') return console.log(version)
    const group = Object.keys(commands).filter((known) => known.startsWith(`${name} `))
    if (group.length > 0 && rest.some(isHelp))
      return console.log(group.map((known) => commands[known]?.help).join('\n\n'))
    throw new UsageError(unknownCommand(name, rest))
  }
  if (rest.some(isHelp)) return console.log(command.help)
  // Read on first use: client commands must not fail on the settings of a server.
  let config: ReturnType<typeof readConfig> | undefined
  const loadConfig = () => {
    if (config) return config
    config = readConfig()
    // Commands that read these settings write data and backups, which only their owner may access.
    process.umask(0o077)
    return config
  }
  await command.run(rest, {
    get config() {
      return loadConfig().config
    },
    get warnings() {
      return loadConfig().warnings
    },
    print: (text) => console.log(text),
    report: (text) => console.error(text),
  })
}

/** With a suggestion for typing errors, such as `bucket lst`, `tokn list`, `serv` and `-v`. */
function unknownCommand(name: string, [second = '']: readonly string[]): string {
  const names = Object.keys(commands)
  const group = names
    .filter((known) => known.startsWith(`${name} `))
    .map((known) => known.slice(name.length + 1))
  const inGroup = nearestName(second, group)
  const suggestion =
    inGroup === null
      ? (nearestName(`${name} ${second}`, names) ??
        nearestName(name, [...names, ...names.map((known) => known.split(' ', 1).join())]) ??
        nearestOption(name))
      : `${name} ${inGroup}`
  const hint = suggestion === null || suggestion === name ? '' : ` Did you mean "${suggestion}"?`
  return group.length > 0
    ? `"${name}" needs one of: ${group.join(', ')}.${hint} See: mediabucket help`
    : `there is no ${name.startsWith('-') ? 'option' : 'command'} "${name}".${hint} See: mediabucket help`
}

/** For `-v`, `version`, `--verison`, `-H` and `--hlep`. */
function nearestOption(name: string): string | null {
  const word = name.replace(/^-+/, '').toLowerCase()
  const options = ['version', 'help']
  const option = options.find((known) => word === known[0]) ?? nearestName(word, options)
  return option === null ? null : `--${option}`
}

const isHelp = (word: string): boolean => word === '--help' || word === '-h'

/** The name of a command, of one or two words, and its arguments. */
function split(args: readonly string[]): [string, readonly string[]] {
  const two = args.slice(0, 2).join(' ')
  return Object.hasOwn(commands, two) ? [two, args.slice(2)] : [args[0] ?? '', args.slice(1)]
}
