import { CommandError, exitCodes, parse, UsageError } from '@mediabucket/cli/command'
import { nearestName } from '@mediabucket/cli/nearest-name'
import { formatCount, formatSize, jsonLine, table } from '@mediabucket/cli/terminal'
import { issueServiceToken, issueToken, isUserId } from '../../access/token-operations.ts'
import { bucketNameRule, isBucketName } from '../../core/names.ts'
import { type Amount, leftOf, limitsObject } from '../../core/quotas.ts'
import { parseDuration } from '../../core/times.ts'
import {
  defaultScopes,
  isScope,
  isServiceScope,
  type Scope,
  scopes,
  serviceScopes,
} from '../../core/token-rules.ts'
import type { TokenRecord } from '../../storage/catalog/access/tokens.ts'
import type { Catalog } from '../../storage/catalog/catalog.ts'
import type { Command } from '../command.ts'
import { limitOptions, limitOptionsHelp, limitsOf, limitTexts, noteOf } from './limit-options.ts'
import { unknownBucket, withCatalog, withNewCatalog } from './open-catalog.ts'

export const tokenCreate: Command = {
  help: `Usage: mediabucket token create --bucket NAME [--name NAME] [--scope SCOPES] [--expires DURATION]
                                [LIMITS]
       mediabucket token create --service --scope SCOPES [--name NAME] [--expires DURATION]

Prints the token, and nothing else, on standard output. It is not shown again. Works while the service is running.

Options:
  --bucket NAME       The bucket; it is created if it does not exist. ${bucketNameRule}
  --name NAME         A name for the token, shown by \`token list\` and accepted by \`token revoke\`.
  --service           Create a service token, which belongs to no bucket: with the scope buckets:manage it creates,
                      sets, lists and deletes buckets over HTTP, and its other scopes are for every bucket. Keep it on servers.
  --scope SCOPES      The scopes of the token, separated by commas. Each is one of: ${scopes.join(', ')}; with
                      --service also buckets:manage. Default: ${defaultScopes.join(', ')}; with --service none.
  --expires DURATION  How long the token is valid: 12h, 30d, 52w. Default: it does not expire.

Limits of what can be uploaded with the token:
${limitOptionsHelp}`,

  async run(args, { config, print, report }) {
    const { values } = parse('token create', {
      args: [...args],
      options: {
        bucket: { type: 'string' },
        service: { type: 'boolean' },
        name: { type: 'string' },
        scope: { type: 'string', multiple: true },
        expires: { type: 'string' },
        ...limitOptions,
      },
    })
    if (values.service === true) return await createServiceToken(values, { config, print, report })
    const { bucket } = values
    const limits = limitsOf(values)
    const names = scopeNames(values.scope)
    const mistakes = [
      bucketMistake(bucket),
      scopeMistake(names),
      limits !== null && names?.includes('tokens:manage') === true ? limitedManager : null,
    ].filter((text) => text !== null)
    if (bucket === undefined || mistakes.length > 0) throw new UsageError(mistakes.join('\n'))
    const now = Date.now()
    const request = {
      bucket,
      name: values.name ?? '',
      scopes: readScopes(names),
      limits,
      note: noteOf(values),
      expiresAt: values.expires === undefined ? null : now + readDuration(values.expires, '--expires'),
      now,
    }
    const { token, id } = await withNewCatalog({ config, report }, async (catalog) => {
      const issued = await issueToken(catalog, request)
      if (issued.isNewBucket) report(newBucketReport(bucket, await catalog.listBuckets()))
      return issued
    })
    report(
      `Created the token ${id} for the bucket "${bucket}" with the scopes ${request.scopes.join(', ')}${limits === null ? '' : ` and the limits ${limitTexts(limits).join('; ')}`}. It is shown only now:`,
    )
    print(token)
  },
}

/** `token create --service`. */
async function createServiceToken(
  values: Parameters<typeof limitsOf>[0] & {
    readonly bucket?: string
    readonly name?: string
    readonly scope?: readonly string[]
    readonly expires?: string
  },
  { config, print, report }: Pick<Parameters<Command['run']>[1], 'config' | 'print' | 'report'>,
): Promise<void> {
  const names = scopeNames(values.scope) ?? []
  const unknown = names.find((name) => !isServiceScope(name))
  const mistakes = [
    values.bucket === undefined ? null : 'A service token belongs to no bucket: leave out --bucket.',
    limitsOf(values) === null ? null : 'A service token has no limits.',
    names.length === 0 ? `A service token needs --scope, one or more of ${serviceScopes.join(', ')}.` : null,
    unknown === undefined
      ? null
      : `"${unknown}" is not a scope. The scopes of service tokens are ${serviceScopes.join(', ')}.`,
  ].filter((text) => text !== null)
  if (mistakes.length > 0) throw new UsageError(mistakes.join('\n'))
  const now = Date.now()
  const request = {
    name: values.name ?? '',
    scopes: serviceScopes.filter((scope) => names.includes(scope)),
    note: noteOf(values),
    expiresAt: values.expires === undefined ? null : now + readDuration(values.expires, '--expires'),
    now,
  }
  const { token, id } = await withNewCatalog({ config, report }, (catalog) =>
    issueServiceToken(catalog, request),
  )
  report(
    `Created the token ${id} of the service with the scopes ${request.scopes.join(', ')}. It is shown only now:`,
  )
  print(token)
}

const scopeNames = (lists: readonly string[] | undefined): readonly string[] | undefined =>
  lists?.flatMap((list) => list.split(',').map((scope) => scope.trim()))

const limitedManager = 'A token with limits cannot have the scope tokens:manage.'

/** The name may be mistyped. */
function newBucketReport(name: string, buckets: readonly { readonly name: string }[]): string {
  const others = buckets.map((bucket) => bucket.name).filter((other) => other !== name)
  const similar = nearestName(name, others)
  const created = `Created the bucket "${name}", because there was none of this name.`
  return similar === null
    ? created
    : `${created} Did you mean "${similar}"? To remove the new one: mediabucket bucket delete ${name}`
}

function bucketMistake(bucket: string | undefined): string | null {
  if (bucket === undefined) return 'token create needs --bucket NAME. See: mediabucket token create --help'
  return isBucketName(bucket) ? null : `"${bucket}" is not a valid bucket name. ${bucketNameRule}`
}

function scopeMistake(names: readonly string[] = []): string | null {
  const unknown = names.find((name) => !isScope(name))
  if (unknown !== undefined && isServiceScope(unknown))
    return `Only service tokens have the scope ${unknown}: mediabucket token create --service --scope ${unknown}`
  return unknown === undefined ? null : `"${unknown}" is not a scope. The scopes are ${scopes.join(', ')}.`
}

const readScopes = (names: readonly string[] | undefined): readonly Scope[] =>
  names === undefined ? defaultScopes : scopes.filter((scope) => names.includes(scope))

/** Milliseconds. Throws UsageError. */
export function readDuration(text: string, option: string): number {
  const duration = parseDuration(text)
  if (duration === null)
    throw new UsageError(`${option} takes a duration such as 12h, 30d or 52w, not "${text}"`)
  return duration
}

/** In place of a bucket's name, which has no such characters. */
const serviceMark = '(service)'

export const tokenList: Command = {
  help: `Usage: mediabucket token list [--bucket NAME | --service] [--json]

Prints a table; its first column is the id of the token. The bucket of a service token is ${serviceMark}. UPLOADED and LEFT
are what was and can be uploaded with a token that has limits, such as an upload link. The header is printed on a terminal only.

Options:
  --bucket NAME  List only the tokens of this bucket.
  --service      List only the service tokens.
  --json         Print one JSON object per line.`,

  async run(args, { config, print, report }) {
    const { values } = parse('token list', {
      args: [...args],
      options: { bucket: { type: 'string' }, service: { type: 'boolean' }, json: { type: 'boolean' } },
    })
    const { bucket, service = false } = values
    if (service && bucket !== undefined)
      throw new UsageError('token list takes --bucket or --service, not both')
    const listed = await withCatalog(config, async (catalog) => {
      if (bucket !== undefined && (await catalog.findBucketNamed(bucket)) === null)
        throw unknownBucket(bucket)
      return catalog.listTokens(bucket)
    })
    const tokens = service ? listed.filter((token) => token.bucket === null) : listed
    const now = Date.now()
    if (values.json) {
      for (const token of tokens) print(jsonLine(toJson(token, now)))
      return
    }
    if (tokens.length === 0)
      return report(
        `There are no tokens. Create one: mediabucket token create ${service ? '--service --scope buckets:manage' : '--bucket NAME'}`,
      )
    const rows = tokens.map((token) => ({ ...token, state: state(token, now) }))
    for (const line of table(columns, rows, { header: process.stdout.isTTY })) print(line)
  },
}

interface ListedToken extends TokenRecord {
  readonly state: string
}

const columns = [
  { header: 'ID', cell: ({ id }: TokenRecord) => id },
  { header: 'BUCKET', cell: ({ bucket }: TokenRecord) => bucket ?? serviceMark },
  { header: 'NAME', cell: ({ name }: TokenRecord) => name || '-' },
  { header: 'STATE', cell: (token: ListedToken) => token.state },
  { header: 'SCOPES', cell: ({ scopes }: TokenRecord) => scopes.join(',') },
  { header: 'CREATED', cell: ({ createdAt }: TokenRecord) => day(createdAt) },
  { header: 'EXPIRES', cell: ({ expiresAt }: TokenRecord) => day(expiresAt) },
  { header: 'LAST USED', cell: ({ lastUsedAt }: TokenRecord) => day(lastUsedAt) },
  { header: 'UPLOADED', cell: ({ limits }: TokenRecord) => uploadedText(limits?.used ?? null) },
  { header: 'LEFT', cell: ({ limits }: TokenRecord) => leftText(limits) },
]

const iso = (time: number | null) => (time === null ? null : new Date(time).toISOString())
const day = (time: number | null) => iso(time)?.slice(0, 10) ?? 'never'

const state = ({ revokedAt, expiresAt }: TokenRecord, now: number) =>
  revokedAt !== null ? 'revoked' : expiresAt !== null && expiresAt <= now ? 'expired' : 'active'

const uploadedText = (used: Amount | null): string =>
  used === null ? '-' : `${formatCount(used.items, 'item')}, ${formatSize(used.bytes)}`

/** Without what unfinished uploads have reserved. */
function leftText(limits: TokenRecord['limits']): string {
  if (limits === null) return '-'
  const { items, bytes } = leftOf(limits, limits)
  const texts = [
    ...(items === null ? [] : [formatCount(items, 'item')]),
    ...(bytes === null ? [] : [formatSize(bytes)]),
  ]
  return texts.length === 0 ? 'any' : texts.join(', ')
}

const toJson = (token: TokenRecord, now: number) => ({
  id: token.id,
  bucket: token.bucket,
  name: token.name,
  state: state(token, now),
  scopes: token.scopes,
  created_at: iso(token.createdAt),
  expires_at: iso(token.expiresAt),
  last_used_at: iso(token.lastUsedAt),
  revoked_at: iso(token.revokedAt),
  note: token.note,
  limits: token.limits && limitsObject(token.limits),
  uploaded: token.limits?.used ?? null,
})

export const tokenRevoke: Command = {
  help: `Usage: mediabucket token revoke ID|NAME [--bucket NAME]

ID is the first column of \`mediabucket token list\` (tok_…, svc_… or usr_…). NAME is the name of an active token; it must be unique. Works
while the service is running.

Options:
  --bucket NAME  Search only the tokens of this bucket.`,

  async run(args, { config, report }) {
    const { word, bucket } = readTokenArguments('token revoke', args)
    const token = await withCatalog(config, async (catalog) => {
      const found = await findToken(catalog, word, bucket, ({ revokedAt }) => revokedAt === null)
      await catalog.revokeToken(found.id, Date.now())
      return found
    })
    report(`Revoked the token ${tokenText(token)}.`)
  },
}

export const tokenRestore: Command = {
  help: `Usage: mediabucket token restore ID|NAME [--bucket NAME]

Gives a user of the issuer whose access was revoked the access back, from the next request on. ID is the first column of
\`mediabucket token list\` (usr_…), NAME the subject of the user. A token is not restored, because others may know it:
create a new one. Works while the service is running.

Options:
  --bucket NAME  Search only the tokens of this bucket.`,

  async run(args, { config, report }) {
    const { word, bucket } = readTokenArguments('token restore', args)
    const token = await withCatalog(config, async (catalog) => {
      const found = await findToken(catalog, word, bucket, ({ revokedAt }) => revokedAt !== null)
      if (!isUserId(found.id))
        throw new CommandError(
          `${found.id} is a token, and stays revoked, because others may know it. Create a new one: mediabucket token create ${found.bucket === null ? `--service --scope ${found.scopes.join(',')}` : `--bucket ${found.bucket}`}`,
        )
      await catalog.restoreToken(found.id)
      return found
    })
    report(
      token.revokedAt === null
        ? `The user ${tokenText(token)} was not revoked.`
        : `Restored the access of the user ${tokenText(token)}.`,
    )
  },
}

/** One token by its id or name, in one bucket or in all. Throws UsageError. */
function readTokenArguments(
  command: string,
  args: readonly string[],
): { readonly word: string; readonly bucket: string | undefined } {
  const { values, positionals } = parse(command, {
    args: [...args],
    allowPositionals: true,
    options: { bucket: { type: 'string' } },
  })
  return { word: requireWord(command, positionals), bucket: values.bucket }
}

/** The ID or NAME of a command. Throws UsageError. */
export function requireWord(command: string, [word, ...more]: readonly string[]): string {
  if (word === undefined || word === '' || more.length > 0)
    throw new UsageError(`${command} takes one ID or NAME. See: mediabucket token list`)
  return word
}

export const tokenText = ({ id, name, bucket }: TokenRecord): string =>
  `${id}${name === '' ? '' : ` "${name}"`} of ${ownerText(bucket)}`

const ownerText = (bucket: string | null): string =>
  bucket === null ? 'the service' : `the bucket "${bucket}"`

/** Finds a token by its id, else by its name: the one of the state, or the only one. Throws CommandError. */
export async function findToken(
  catalog: Pick<Catalog, 'listTokens' | 'findBucketNamed'>,
  idOrName: string,
  bucket: string | undefined,
  hasState: (token: TokenRecord) => boolean,
): Promise<TokenRecord> {
  if (bucket !== undefined && (await catalog.findBucketNamed(bucket)) === null) throw unknownBucket(bucket)
  const tokens = await catalog.listTokens(bucket)
  const named = tokens.filter(({ name }) => name === idOrName)
  const active = named.filter(hasState)
  const matches = [tokens.filter(({ id }) => id === idOrName), active, named].find((all) => all.length > 0)
  const [found] = matches ?? []
  if (matches === undefined || found === undefined)
    throw new CommandError(
      `there is no token "${idOrName}"${bucket === undefined ? '' : ` in the bucket "${bucket}"`}. See: mediabucket token list`,
      exitCodes.notFound,
    )
  if (matches.length > 1) throw ambiguousName(idOrName, matches)
  return found
}

function ambiguousName(name: string, tokens: readonly TokenRecord[]): CommandError {
  const buckets = new Set(tokens.map(({ bucket }) => bucket))
  const remedy =
    buckets.size === tokens.length ? 'Pass --bucket NAME or one of the ids' : 'Pass one of the ids'
  const rows = tokens.map(({ id, bucket }) => `  ${id} of ${ownerText(bucket)}`)
  return new CommandError(`${tokens.length} tokens have the name "${name}". ${remedy}:\n${rows.join('\n')}`)
}
