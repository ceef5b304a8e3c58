import { inspect } from 'node:util'
import { type CommandDescription, UsageError } from '@mediabucket/cli/command'
import { nearestName } from '@mediabucket/cli/nearest-name'
import { printableLines, printableText, reportLostOutput } from '@mediabucket/cli/terminal'
import { version } from '../core/version.ts'
import { commands, type ListedCommand } from './commands.ts'
import { exitCodeOf, explainFailure, failureLine } from './explain-failure.ts'

export async function main(args: readonly string[]): Promise<void> {
  // A service goes on.
  if (!isServing(args)) reportLostOutput()
  try {
    const words = await withoutEnvFile(args)
    await dispatch(words, words.length < args.length)
  } catch (error) {
    const explained = explainFailure(error)
    const { isReadByProgram } = await import('../service/environment.ts')
    // Programs that collect the log of a service read its failed start too.
    if (isServing(args) && isReadByProgram()) console.error(failureLine(error, explained))
    else console.error(printableLines(explained === null ? inspect(error) : `mediabucket: ${explained}`))
    process.exitCode = exitCodeOf(error)
  }
}

/** Whether the command runs the service, rather than checks its settings or explains it. */
function isServing(args: readonly string[]): boolean {
  const words = args.slice(args[0] === '--env-file' ? 2 : args[0]?.startsWith('--env-file=') ? 1 : 0)
  return words.length === 1 && words[0] === 'serve'
}

/** Reads the file of `--env-file`, which is before the command, and returns the other arguments. */
async function withoutEnvFile(args: readonly string[]): Promise<readonly string[]> {
  const [, joined] = /^--env-file(?:=(.*))?$/s.exec(args[0] ?? '') ?? []
  if (args[0] !== '--env-file' && joined === undefined) return args
  const path = joined ?? args[1]
  if (!path) throw new UsageError('--env-file needs a FILE')
  const { loadEnvFile } = await import('../service/environment.ts')
  loadEnvFile(path)
  return args.slice(joined === undefined ? 2 : 1)
}

/** `hasEnvFile` is whether the settings of a file were read. */
async function dispatch(args: readonly string[], hasEnvFile: boolean): Promise<void> {
  const [name, rest] = split(args)
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!command) {
    const words = args.filter((word) => word !== '' && !isHelp(word))
    const topic = words[0] === 'help' ? words.slice(1) : words
    if (topic.length === 0 || topic[0] === 'settings') {
      const { help, settingsHelp } = await import('./help.ts')
      return console.log(topic.length === 0 ? help() : settingsHelp(topic.slice(1)))
    }
    if (name === 'help' || isHelp(name)) return await dispatch([...topic, '--help'], hasEnvFile)
    if (name === '--version' || name === '-V') return console.log(version)
    const group = Object.entries(commands).filter(([known]) => known.startsWith(`${name} `))
    if (group.length > 0 && rest.some(isHelp)) {
      const found = await Promise.all(group.map(([, listed]) => helpOf(listed)))
      return console.log(found.join('\n\n'))
    }
    throw new UsageError(unknownCommand(name, rest))
  }
  if (rest.some(isHelp)) return console.log(await helpOf(command))
  await run(command, rest, hasEnvFile)
}

async function helpOf(listed: ListedCommand): Promise<string> {
  if ('loadMeta' in listed) return (await listed.loadMeta()).help
  const { help } = await ('load' in listed ? listed.load() : listed.loadClient())
  return help
}

async function run(listed: ListedCommand, args: readonly string[], hasEnvFile: boolean): Promise<void> {
  const output = {
    print: (...lines: readonly string[]) => console.log(lines.map(printableText).join('\n')),
    report: (...lines: readonly string[]) => console.error(lines.map(printableText).join('\n')),
  }
  if ('loadMeta' in listed) {
    const command = await listed.loadMeta()
    return console.log(await command.run(args, describeAll))
  }
  if ('loadClient' in listed) {
    const command = await listed.loadClient()
    return await command.run(args, output)
  }
  const [command, { readConfig }, { loadSettingsFile }, { becomeOwnerOf }] = await Promise.all([
    listed.load(),
    import('../service/config.ts'),
    import('../service/environment.ts'),
    import('./service-user.ts'),
  ])
  // Read on first use: invalid arguments are reported before invalid settings.
  let config: ReturnType<typeof readConfig> | undefined
  const loadConfig = () => {
    if (config) return config
    if (!hasEnvFile) loadSettingsFile()
    config = readConfig()
    if (listed !== commands['serve'] || args.includes('--check')) becomeOwnerOf(config.config.data)
    // Commands that read these settings write data and backups, which only their owner may access.
    process.umask(0o077)
    return config
  }
  await command.run(args, {
    get config() {
      return loadConfig().config
    },
    get warnings() {
      return loadConfig().warnings
    },
    ...output,
  })
}

const describeAll = (): Promise<CommandDescription[]> =>
  Promise.all(
    Object.entries(commands).map(async ([name, listed]) => ({
      name,
      summary: listed.summary,
      help: await helpOf(listed),
    })),
  )

/** The names that other programs use for commands. */
const otherNames: Readonly<Record<string, readonly string[]>> = {
  list: ['ls'],
  dir: ['ls'],
  download: ['get'],
  cat: ['get'],
  cp: ['upload', 'get'],
  copy: ['upload', 'get'],
  put: ['upload'],
  add: ['upload'],
  delete: ['rm'],
  remove: ['rm'],
  del: ['rm'],
  mv: ['edit'],
  rename: ['edit'],
  share: ['link'],
  signin: ['login'],
  start: ['serve'],
}

/** With a suggestion for typing errors, such as `bucket lst`, `tokn list`, `serv` and `-v`. */
function unknownCommand(name: string, [second = '']: readonly string[]): string {
  const others = Object.hasOwn(otherNames, name) ? otherNames[name] : undefined
  if (others !== undefined)
    return `there is no command "${name}". Did you mean ${others.map((other) => `"${other}"`).join(' or ')}? See: mediabucket help`
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
