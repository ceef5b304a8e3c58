import { readFileSync } from 'node:fs'
import { isatty } from 'node:tty'
import { ExplainedError, errorCode } from '../core/faults.ts'

/** Every invalid setting, reported together (docs/interface.md O7). */
export class ConfigError extends ExplainedError {
  override readonly name = 'ConfigError'
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    const [first = ''] = faults
    super(faults.length === 1 ? first : `${faults.length} settings are wrong:\n  ${faults.join('\n  ')}`)
    this.faults = faults
  }
}

type Env = Record<string, string | undefined>

/**
 * Whether a program reads the reason of a failed start, also where the settings are invalid: the log is JSON by a setting, or goes to the
 * journal of systemd, which sets JOURNAL_STREAM. Elsewhere people read it.
 */
export const isReadByProgram = (env: Env = process.env): boolean =>
  env['MEDIABUCKET_LOG_FORMAT'] === 'json' ||
  (env['MEDIABUCKET_LOG_FORMAT'] !== 'text' && env['JOURNAL_STREAM'] !== undefined && !isatty(2))

/** The file of the settings in every installation, for the service and for the commands on its data. */
export const settingsFile = '/etc/mediabucket/env'

/** The file of this process, how it is read again, and the variables that it has set. */
let loaded: { readonly read: (env: Env) => Env; readonly names: readonly string[] } | null = null

/**
 * Sets the variables of a file in the syntax of systemd's `EnvironmentFile=`. Variables that are set already stay, as with
 * `node --env-file`. Throws ConfigError, without the values of the file, which can be secrets.
 */
export function loadEnvFile(path: string, env: Env = process.env): void {
  const names = setVariables(readEnvFile(path), env)
  loaded = { read: () => readEnvFile(path), names }
}

function readEnvFile(path: string): Env {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw new ConfigError([
      `The file of the settings cannot be read: ${path} (${errorCode(error)}). Run the command as the user of the service, or as root.`,
    ])
  }
  return parseEnvFile(path, text)
}

/**
 * As loadEnvFile, for the file of every installation, if it exists. Who cannot read it and names a data directory uses other data than
 * those of the service.
 */
export function loadSettingsFile(env: Env = process.env, path = settingsFile): void {
  const values = readSettingsFile(path, env)
  const names = values === null ? [] : setVariables(values, env)
  // A file that is missing may be created later; one that was read must not be missing later.
  let wasRead = values !== null
  function read(own: Env): Env {
    const current = wasRead ? readEnvFile(path) : readSettingsFile(path, own)
    wasRead ||= current !== null
    return current ?? {}
  }
  loaded = { read, names }
}

/** Null if the file does not exist, or is not for the data of this process. */
function readSettingsFile(path: string, env: Env): Env | null {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '') || env['MEDIABUCKET_DATA']) return null
    throw new ConfigError([
      `The settings of the service in ${path} cannot be read (${errorCode(error)}). Run the command with sudo, or set MEDIABUCKET_DATA to use other data.`,
    ])
  }
  return parseEnvFile(path, text)
}

/**
 * The variables of this process with those that its file has now. Those of the process itself stay, because a worker that is started
 * later inherits them. Throws ConfigError.
 */
export function rereadVariables(env: Env = process.env): Env {
  if (loaded === null) return env
  const { read, names } = loaded
  const own = Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)))
  return { ...read(own), ...own }
}

/** Returns the names of the variables that it has set. */
function setVariables(variables: Env, env: Env): string[] {
  const values = Object.entries(variables).filter(([name]) => env[name] === undefined)
  for (const [name, value] of values) env[name] = value
  return values.map(([name]) => name)
}

/** Sets the home directory of this process, which has become another user. */
export function setHome(directory: string): void {
  process.env['HOME'] = directory
}

/** One assignment: a name, and quoted parts or an unquoted value, which a backslash at the end of a line continues. */
const assignment =
  /[^\S\n]*([A-Za-z_]\w*)[^\S\n]*=((?:[^\S\n]*(?:'[^']*'|"(?:\\[\s\S]|[^"\\])*"))*)[^\S\n]*((?:\\[\s\S]|[^\\\n])*)(?:\n|$)/y
const blankOrComment = /[^\S\n]*(?:[#;](?:\\[\s\S]|[^\\\n])*)?(?:\n|$)/y

/** Reads the syntax of systemd.exec(5), `EnvironmentFile=`. `path` is for messages. Throws ConfigError. */
export function parseEnvFile(path: string, text: string): Record<string, string> {
  const values: Record<string, string> = {}
  const source = text.replaceAll('\r\n', '\n')
  for (let at = 0; at < source.length; ) {
    blankOrComment.lastIndex = at
    assignment.lastIndex = at
    const [skipped] = blankOrComment.exec(source) ?? []
    if (skipped !== undefined) {
      at += skipped.length
      continue
    }
    const [whole, name, quoted = '', rest = ''] = assignment.exec(source) ?? []
    if (whole === undefined || name === undefined || (quoted === '' && /^["']/.test(rest)))
      throw new ConfigError([
        `Line ${source.slice(0, at).split('\n').length} of ${path} is not NAME=value. A value with spaces may be in quotes.`,
      ])
    values[name] = unquote(quoted) + unescaped(rest)
    at += whole.length
  }
  return values
}

/** Adjacent quoted parts are joined. */
const unquote = (parts: string): string =>
  [...parts.matchAll(/'([^']*)'|"((?:\\[\s\S]|[^"\\])*)"/g)]
    .map(([, single, double = '']) => single ?? double.replace(/\\(["\\`$])|\\\n/g, '$1'))
    .join('')

/** Spaces at the end are removed, unless they are escaped. */
const unescaped = (text: string): string =>
  text
    .replace(/((?:^|[^\\])(?:\\\\)*)\s+$/, '$1')
    .replace(/\\([\s\S])/g, (_, escaped: string) => (escaped === '\n' ? '' : escaped))
