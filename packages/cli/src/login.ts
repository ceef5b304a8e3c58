import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { Token } from '@mediabucket/client'
import { clientCommand, connect, withService } from './client-command.ts'
import {
  clientSettings,
  defaultProfile,
  readProfiles,
  readTokenFile,
  requireProfile,
  writeProfiles,
} from './client-settings.ts'
import { type ClientCommand, type CommandOutput, parse, UsageError } from './command.ts'
import { ask } from './questions.ts'
import { alignColumns, formatCount } from './terminal.ts'

const profileName = /^[\w.@-]{1,64}$/

export const login: ClientCommand = {
  help: `Usage: mediabucket login [--profile NAME] [--url URL] [--token-file FILE]

Asks for the URL of a service and a token, checks them, and stores them as a profile. The commands over HTTP then need no
environment variables: they use the profile "default", or another one with --profile. Options and environment variables
have precedence. Without a terminal, the token is read from standard input.

Profiles are stored in $XDG_CONFIG_HOME/mediabucket/profiles.json, by default ~/.config/mediabucket/profiles.json, which only
you can read (mode 0600). mediabucket logout removes a profile.

Options:
  --profile NAME     The name of the profile. Default: default.
  --url URL          The base URL of the service, instead of asking for it.
  --token-file FILE  A file with the token, instead of asking for it.`,

  async run(args, { report }) {
    const { values } = parse('login', {
      args: [...args],
      options: {
        profile: { type: 'string', default: defaultProfile },
        url: { type: 'string' },
        'token-file': { type: 'string' },
      },
    })
    const { profile } = values
    if (!profileName.test(profile))
      throw new UsageError(
        `--profile takes up to 64 letters, digits and the characters . _ @ -, not "${profile}"`,
      )
    const known = readProfiles()
    const suggested = known.get(profile)?.url ?? clientSettings.MEDIABUCKET_URL.defaultText
    const isTerminal = process.stdin.isTTY === true
    const url =
      values.url ??
      (isTerminal ? (await ask(`URL of the service [${suggested}]: `, process.stderr)).trim() : '')
    const settings = {
      url: url || suggested,
      urlSource: 'the URL',
      token: await readToken(values['token-file'], isTerminal, report),
      tokenSource: 'the token',
    }
    if (settings.token === '')
      throw new UsageError(
        'the token is empty. To create one, run where the service runs: mediabucket token create --bucket NAME',
      )
    await withService(settings, null, async ({ interrupted }) => {
      const { client } = await connect(settings, report)
      const { bucket, scopes, expires_at } = await client.whoami({ signal: interrupted })
      known.set(profile, { url: settings.url, token: settings.token })
      const path = writeProfiles(known)
      report(
        `Signed in to ${bucket === null ? 'all buckets' : `the bucket "${bucket}"`} of ${settings.url} (${scopes.join(', ')}; expires: ${expires_at ?? 'never'}).`,
        `Stored as the profile "${profile}" in ${path}.`,
      )
    })
  },
}

export const logout: ClientCommand = {
  help: `Usage: mediabucket logout [--profile NAME]

Removes a profile that mediabucket login has stored. The token stays valid; mediabucket token revoke revokes it where the service
runs.

Options:
  --profile NAME  The name of the profile. Default: default.`,

  async run(args, { report }) {
    const { profile } = parse('logout', {
      args: [...args],
      options: { profile: { type: 'string', default: defaultProfile } },
    }).values
    requireProfile(profile)
    const profiles = readProfiles()
    profiles.delete(profile)
    writeProfiles(profiles)
    report(`Removed the profile "${profile}". Its token is still valid.`)
  },
}

async function readToken(
  file: string | undefined,
  isTerminal: boolean,
  report: CommandOutput['report'],
): Promise<string> {
  if (file !== undefined) return readTokenFile(file)
  if (!isTerminal) return (await text(process.stdin)).trim()
  // The echo of the terminal ends before the question is shown.
  const answer = ask('', new Writable({ write: (_chunk, _encoding, done) => done() }))
  report('Token (it is not shown):')
  return (await answer).trim()
}

/** Of a token with limits: what was uploaded, and what is left. */
function limitRows({ limits, uploaded, left }: Token): string[][] {
  if (limits === null) return []
  const files = (count: number) => formatCount(count, 'file')
  const bytes = (count: number) => formatCount(count, 'byte')
  return [
    ['uploaded', `${files(uploaded?.items ?? 0)}, ${bytes(uploaded?.bytes ?? 0)}`],
    [
      'left',
      `${left?.items == null ? 'any number of files' : files(left.items)}, ${left?.bytes == null ? 'any number of bytes' : bytes(left.bytes)}`,
    ],
    ...(limits.max_file_size === null ? [] : [['file size', `at most ${bytes(limits.max_file_size)}`]]),
    ...(limits.types === null ? [] : [['types', limits.types.join(', ')]]),
    ...(limits.item_days === null ? [] : [['files expire', `after ${formatCount(limits.item_days, 'day')}`]]),
  ]
}

export const whoami = clientCommand({
  help: `Usage: mediabucket whoami [--json]

Shows the service, and the bucket, the scopes and the expiry of the token. Never prints the token itself.

Options:
  --json  Print the JSON object of the service.`,

  read: (args) => parse('whoami', { args: [...args], options: { json: { type: 'boolean' } } }).values,

  async run({ json }, { client, url, output, interrupted }) {
    const token = await client.whoami({ signal: interrupted })
    if (json) return await output.json([token])
    const rows = [
      ['service', url],
      ['token', token.id],
      ['name', token.name || '(none)'],
      ['bucket', token.bucket ?? '(all)'],
      ['scopes', token.scopes.join(', ')],
      ['created', token.created_at],
      ['expires', token.expires_at ?? 'never'],
      ...limitRows(token),
    ]
    await output.lines(alignColumns(rows))
  },
})
