import { clientSettings } from '@mediabucket/cli/client-settings'
import { exitCodes, UsageError } from '@mediabucket/cli/command'
import { nearestName } from '@mediabucket/cli/nearest-name'
import { programName } from '@mediabucket/cli/processes'
import { settingsFile } from '../service/environment.ts'
import { settings } from '../service/settings.ts'
import { commandGroups, commands } from './commands.ts'

/** The exit codes in the help and the man page. */
export const exitCodeRows: readonly (readonly [string, string])[] = [
  ['0', 'done'],
  ['1', 'failed'],
  ['2', 'an argument or setting is invalid'],
  [`${exitCodes.accessDenied}`, 'the service rejects the token (401), or the token lacks the scope (403)'],
  [`${exitCodes.notFound}`, 'the item, bucket, token, webhook or delivery does not exist'],
  [
    `${exitCodes.incomplete}`,
    'the backup, restore or migration is complete except for the bytes of the reported items',
  ],
  [`${exitCodes.partial}`, 'some files of a sync could not be transferred'],
  [
    `${exitCodes.vanished}`,
    'some files of a sync could not be transferred, because they were removed in the meantime',
  ],
  [`${exitCodes.deletesRefused}`, 'a sync transferred everything, and refused to delete so much'],
  [`${exitCodes.interrupted}`, 'interrupted with Ctrl-C'],
  [`${exitCodes.terminated}`, 'ended by SIGTERM, or with the npm or npx that runs the command'],
]

/** The text of `mediabucket help`. */
export function help(): string {
  const width = Math.max(...Object.keys(commands).map(({ length }) => length))
  const commandRows = commandGroups.map(({ title, commands }) => {
    const summaries = Object.entries(commands).map(([name, { summary }]) => [name, summary] as const)
    return `${title}:\n${rows(summaries, width)}`
  })
  return `mediabucket: a self-hosted media bucket

Usage: mediabucket [--env-file FILE] COMMAND [OPTIONS]

The service and the commands on its data read settings from ${settingsFile} if it exists: lines NAME=value. --env-file names
another file. Variables that are set take precedence. Run by root, a command becomes the user who owns the data directory.

Here it runs as: ${programName()}

${commandRows.join('\n\n')}

Settings of the commands over HTTP (environment variables, with their defaults):
${rows(Object.entries(clientSettings).map(([name, setting]) => [name, descriptionOf(setting)]))}

Exit codes:
${rows(exitCodeRows)}

See also:
  mediabucket COMMAND --help  describes a command
  mediabucket help settings   describes all settings of the service, or those that are named
  mediabucket --version       prints the version`
}

/** The start of the name of each setting. */
const prefix = 'MEDIABUCKET_'

/** The text of `mediabucket help settings`, or that of the named settings. Throws UsageError. */
export function settingsHelp(names: readonly string[]): string {
  const texts = new Map(
    Object.entries(settings).map(([name, setting]) => [name, `${name}\n${wrap(descriptionOf(setting))}`]),
  )
  const textOf = (name: string) => {
    const text = texts.get(fullName(name))
    if (text !== undefined) return text
    const names = [...texts.keys()].flatMap((known) => [known, known.slice(prefix.length)])
    const nearest = nearestName(name.toUpperCase(), names)
    const hint = nearest === null ? '' : ` Did you mean "${fullName(nearest)}"?`
    throw new UsageError(`there is no setting "${name}".${hint} See: mediabucket help settings`)
  }
  if (names.length > 0) return names.map(textOf).join('\n\n')
  const all = [...texts.values()].join('\n\n')
  return `Settings of the service: environment variables, with their defaults.\n\n${all}`
}

/** The name of a setting that was typed in lower case or without its prefix. */
function fullName(name: string): string {
  const upper = name.toUpperCase()
  return upper.startsWith(prefix) ? upper : prefix + upper
}

interface Setting {
  readonly description: string
  readonly defaultText: string
}

const descriptionOf = ({ description, defaultText }: Setting): string =>
  `${description}${defaultText ? ` [${defaultText}]` : ''}`

const rows = (pairs: readonly (readonly [string, string])[], width = widest(pairs)): string =>
  pairs.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`).join('\n')

const widest = (pairs: readonly (readonly [string, string])[]): number =>
  Math.max(...pairs.map(([name]) => name.length))

/** Breaks a text into indented lines of at most 100 characters, where its words allow that. */
const wrap = (text: string): string => text.replace(/(.{1,96})(?: |$)/g, '    $1\n').trimEnd()
