import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

/** Where the commands that talk to a service find it. */
export interface ClientSettings {
  readonly url: string
  /** Empty where none is set. */
  readonly token: string
}

/** What the help tells of these settings: name, meaning, default. */
export const clientSettings = {
  MEDIABUCKET_URL: { description: 'The service: its base URL.', defaultText: 'http://127.0.0.1:8080' },
  MEDIABUCKET_TOKEN: { description: 'The token for its bucket.', defaultText: '' },
} as const

/** Where programs keep what shall outlive them, by the XDG Base Directory Specification: other than absolute paths do not count. */
export function stateDirectory(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const given = env['XDG_STATE_HOME'] ?? ''
  return join(isAbsolute(given) ? given : join(homedir(), '.local/state'), 'mediabucket')
}

export function readClientSettings(
  env: Readonly<Record<string, string | undefined>> = process.env,
): ClientSettings {
  const read = (name: keyof typeof clientSettings) => env[name]?.trim() || clientSettings[name].defaultText
  return { url: read('MEDIABUCKET_URL'), token: read('MEDIABUCKET_TOKEN') }
}
