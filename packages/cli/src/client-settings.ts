import { chmodSync, mkdirSync, readFileSync, realpathSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { parseArgs } from 'node:util'
import { CommandError, exitCodes, UsageError } from './command.ts'
import { shellWord } from './processes.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** The service that a command uses, and the names of the settings that select it, for messages. */
export interface ClientSettings {
  readonly url: string
  readonly urlSource: string
  readonly token: string
  readonly tokenSource: string
}

/** Name, description and default of each setting, for the help. */
export const clientSettings = {
  MEDIABUCKET_URL: { description: 'The service: its base URL.', defaultText: 'http://127.0.0.1:8080' },
  MEDIABUCKET_TOKEN: { description: 'The token for its bucket.', defaultText: '' },
} as const

/** The part of the help of each command over HTTP that describes its connection. */
export const connectionHelp = `Service:
  --profile NAME     Use the URL and the token of a profile of mediabucket login.
  --url URL          The base URL of the service. Default: MEDIABUCKET_URL, or the profile "default".
  --token-file FILE  A file with the token. Default: MEDIABUCKET_TOKEN, or the profile "default". With a token that is not of
                     a profile, the default URL is http://127.0.0.1:8080.`

/** The same for commands that work on the data of a service without these options. */
export const administrationHelp = `Service: with one of these options, the command works over HTTP, and otherwise on the data, where the service runs.
  --profile NAME     Use the URL and the token of a profile of mediabucket login.
  --url URL          The base URL of the service. Default: MEDIABUCKET_URL, or the profile "default".
  --token-file FILE  A file with the token. Default: MEDIABUCKET_TOKEN, or the profile "default".`

/** The options of all commands over HTTP. */
export interface ConnectionOptions {
  readonly profile?: string | undefined
  readonly url?: string | undefined
  readonly 'token-file'?: string | undefined
}

/** Splits the arguments of a command into the options of its connection and the others. Throws UsageError. */
export function takeConnectionOptions(args: readonly string[]): {
  connection: ConnectionOptions
  rest: readonly string[]
} {
  const text = { type: 'string' } as const
  const options = { profile: text, url: text, 'token-file': text }
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true })
  const connection: Record<string, string> = {}
  const rest = new Map(args.entries())
  for (const token of tokens) {
    if (token.kind !== 'option' || !Object.hasOwn(options, token.name)) continue
    if (!token.value || (token.inlineValue === false && token.value.startsWith('-')))
      throw new UsageError(`--${token.name} needs a value.`)
    connection[token.name] = token.value
    rest.delete(token.index)
    if (token.inlineValue === false) rest.delete(token.index + 1)
  }
  return { connection, rest: [...rest.values()] }
}

/**
 * A directory below the state directory of the XDG Base Directory Specification, which ignores relative paths. Null for a user who has no home
 * directory.
 */
export function stateDirectory(
  kind: 'downloads' | 'sync' | 'uploads',
  env: Environment = process.env,
): string | null {
  const base = baseDirectory(env['XDG_STATE_HOME'], '.local/state')
  return base === null ? null : join(base, 'mediabucket', kind)
}

/** The file of the profiles, below the configuration directory of the same specification. Null for a user who has no home directory. */
function profilesFile(env: Environment): string | null {
  const base = baseDirectory(env['XDG_CONFIG_HOME'], '.config')
  return base === null ? null : join(base, 'mediabucket/profiles.json')
}

function baseDirectory(given = '', inHome: string): string | null {
  if (isAbsolute(given)) return given
  try {
    const home = homedir()
    // An empty or relative HOME would store tokens below the current directory.
    return isAbsolute(home) ? join(home, inHome) : null
  } catch {
    // HOME is not set, and the user has no entry, as in some containers.
    return null
  }
}

/**
 * The service of a command: an option before the environment before the profile "default". The token of a profile is sent to the URL
 * of the profile only, and a token of the environment never to that of a profile. Throws UsageError.
 */
export function readClientSettings(
  options: ConnectionOptions = {},
  env: Environment = process.env,
): ClientSettings {
  const { profile, url, 'token-file': tokenFile } = options
  if (profile !== undefined) {
    if (url !== undefined || tokenFile !== undefined)
      throw new UsageError('--profile has a URL and a token: use it without --url and --token-file')
    return settingsOf(profile, requireProfile(profile, env))
  }
  const [givenUrl, urlSource] =
    url === undefined ? [env['MEDIABUCKET_URL']?.trim(), 'MEDIABUCKET_URL'] : [url, '--url']
  const [token, tokenSource] =
    tokenFile === undefined
      ? [env['MEDIABUCKET_TOKEN']?.trim(), 'MEDIABUCKET_TOKEN']
      : [readTokenFile(tokenFile), '--token-file']
  if (token)
    return { url: givenUrl || clientSettings.MEDIABUCKET_URL.defaultText, urlSource, token, tokenSource }
  const profiles = readProfiles(env)
  const stored = profiles.get(defaultProfile)
  if (stored !== undefined && (!givenUrl || isSameUrl(givenUrl, stored.url)))
    return settingsOf(defaultProfile, stored)
  throw noToken(givenUrl, profiles)
}

/** Says that no token is set for a URL, and which profiles are for it or for another one. */
function noToken(url: string | undefined, profiles: ReadonlyMap<string, Profile>): UsageError {
  const create = 'To create a token, run where the service runs: mediabucket token create --bucket NAME'
  const known = profiles.get(defaultProfile)
  const [other] = [...profiles].find(([, profile]) => url && isSameUrl(url, profile.url)) ?? []
  if (other !== undefined)
    return new UsageError(
      `MEDIABUCKET_TOKEN is not set. The profile "${other}" is for this URL: use --profile ${other}.`,
    )
  if (known === undefined || !url)
    return new UsageError(
      `MEDIABUCKET_TOKEN is not set. Set it, or sign in with mediabucket login. ${create}`,
    )
  const [own, asked] = [shownUrl(known.url), shownUrl(url)]
  return new UsageError(
    `the profile "${defaultProfile}" is for ${own}, not for ${asked}, and MEDIABUCKET_TOKEN is not set. Set it, or sign in with mediabucket login --profile NAME --url ${shellWord(asked)}, and use --profile NAME. ${create}`,
  )
}

/** The part before an @ may contain a password. */
const shownUrl = (url: string): string => (url.includes('@') ? 'URL' : url)

/** Throws UsageError. */
export function readTokenFile(path: string): string {
  try {
    const token = readFileSync(path, 'utf8').trim()
    if (token !== '') return token
  } catch (error) {
    throw new UsageError(`--token-file: ${error instanceof Error ? error.message : error}`)
  }
  throw new UsageError(`--token-file: ${path} is empty`)
}

const settingsOf = (name: string, { url, token }: Profile): ClientSettings => ({
  url,
  urlSource: `the URL of the profile "${name}"`,
  token,
  tokenSource: `the token of the profile "${name}" (mediabucket login)`,
})

function isSameUrl(one: string, other: string): boolean {
  const hrefOf = (text: string) => URL.parse(text)?.href.replace(/\/+$/, '')
  return hrefOf(one) !== undefined && hrefOf(one) === hrefOf(other)
}

/** A service and a token that `mediabucket login` has stored. */
export interface Profile {
  readonly url: string
  readonly token: string
}

/** The profile without a name. */
export const defaultProfile = 'default'

/** The stored profiles, by their names. Throws CommandError. */
export function readProfiles(env: Environment = process.env): Map<string, Profile> {
  const path = profilesFile(env)
  if (path === null) return new Map()
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return new Map()
    throw new CommandError(`the profiles cannot be read: ${error instanceof Error ? error.message : error}`)
  }
  const profiles = profilesIn(text)
  if (profiles !== null) return profiles
  throw new CommandError(`${path} is damaged. Remove it, and run mediabucket login again.`)
}

/** Null for another text. */
function profilesIn(text: string): Map<string, Profile> | null {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
    const entries = Object.entries(value).map(([name, profile]: [string, unknown]) => {
      if (typeof profile !== 'object' || profile === null || !('url' in profile) || !('token' in profile))
        return null
      const { url, token } = profile
      return typeof url === 'string' && typeof token === 'string' ? ([name, { url, token }] as const) : null
    })
    const valid = entries.filter((entry) => entry !== null)
    return valid.length === entries.length ? new Map(valid) : null
  } catch {
    return null
  }
}

/** Replaces the stored profiles, readable by the user only, and returns the path of their file. Throws CommandError. */
export function writeProfiles(
  profiles: ReadonlyMap<string, Profile>,
  env: Environment = process.env,
): string {
  const path = profilesFile(env)
  if (path === null)
    throw new CommandError(
      'the profile cannot be stored, because this user has no home directory. Set HOME or XDG_CONFIG_HOME to a directory that only this user can write to.',
    )
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const target = realPath(path)
  const temporary = `${target}.${process.pid}.new`
  writeFileSync(temporary, `${JSON.stringify(Object.fromEntries(profiles), null, 2)}\n`, {
    mode: 0o600,
    flag: 'wx',
  })
  chmodSync(temporary, 0o600)
  renameSync(temporary, target)
  return path
}

/** Follows a link, such as that of a directory of configuration files under version control. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

/** Throws CommandError if there is no such profile. */
export function requireProfile(name: string, env: Environment = process.env): Profile {
  const profiles = readProfiles(env)
  const profile = profiles.get(name)
  if (profile !== undefined) return profile
  const others = profiles.size === 0 ? 'There is none yet' : `There are: ${[...profiles.keys()].join(', ')}`
  throw new CommandError(
    `there is no profile "${name}". ${others}. To create it: mediabucket login --profile ${shellWord(name)}`,
    exitCodes.notFound,
  )
}
