import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

/** The settings of commands that use a service. */
export interface ClientSettings {
  readonly url: string
  /** Empty if none is set. */
  readonly token: string
}

/** Name, description and default of each setting, for the help. */
export const clientSettings = {
  MEDIABUCKET_URL: { description: 'The service: its base URL.', defaultText: 'http://127.0.0.1:8080' },
  MEDIABUCKET_TOKEN: { description: 'The token for its bucket.', defaultText: '' },
} as const

/** The state directory of the XDG Base Directory Specification, which ignores relative paths. */
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
