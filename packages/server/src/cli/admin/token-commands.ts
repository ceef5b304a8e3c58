import { CommandError, exitCodes, parse, UsageError } from '@mediabucket/cli/command'
import { nearestName } from '@mediabucket/cli/nearest-name'
import { formatCount, formatSize, jsonLine, table } from '@mediabucket/cli/terminal'
import { issueToken, isUserId } from '../../access/token-operations.ts'
import { bucketNameRule, isBucketName } from '../../core/names.ts'
import { type Amount, leftOf, limitsObject } from '../../core/quotas.ts'
import { parseDuration } from '../../core/times.ts'
import { defaultScopes, isScope, type Scope, scopes } from '../../core/token-rules.ts'
import type { TokenRecord } from '../../storage/catalog/access/tokens.ts'
import type { Catalog } from '../../storage/catalog/catalog.ts'
import type { Command } from '../command.ts'
import { limitOptions, limitOptionsHelp, limitsOf, limitTexts, noteOf } from './limit-options.ts'
import { unknownBucket, withCatalog, withNewCatalog } from './open-catalog.ts'

export const tokenCreate: Command = {
  help: `Usage: mediabucket token create --bucket NAME [--name NAME] [--scope SCOPES] [--expires DURATION]
                                [LIMITS]

Prints the token, and nothing else, on standard output. It is not shown again. Works while the service is running.

Options:
  --bucket NAME       The bucket; it is created if it does not exist. ${bucketNameRule}
  --name NAME         A name for the token, shown by \`token list\` and accepted by \`token revoke\`.
  --scope SCOPES      The scopes of the token, separated by commas. Each is one of: ${scopes.join(', ')}.
                      Default: ${defaultScopes.join(', ')}.
  --expires DURATION  How long the token is valid: 12h, 30d, 52w. Default: it does not expire.

Limits of what can be uploaded with the token:
${limitOptionsHelp}`,

  async run(args, { config, print, report }) {
    const { values } = parse('token create', {
      args: [...args],
      options: {
        bucket: { type: 'string' },
        name: { type: 'string' },
        scope: { type: 'string', multiple: true },
        expires: { type: 'string' },
        ...limitOptions,
      },
    })
    const { bucket } = values
    const limits = limitsOf(values)
    const names = values.scope?.flatMap((list) => list.split(',').map((scope) => scope.trim()))
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
      expiresAt: values.expires === undefined ? null : now + readExpiry(values.expires),
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
  return unknown === undefined ? null : `"${unknown}" is not a scope. The scopes are ${scopes.join(', ')}.`
}

const readScopes = (names: readonly string[] | undefined): readonly Scope[] =>
  names === undefined ? defaultScopes : scopes.filter((scope) => names.includes(scope))

/** Milliseconds. Throws UsageError. */
export function readExpiry(text: string): number {
  const duration = parseDuration(text)
  if (duration === null)
    throw new UsageError(`--expires takes a duration such as 12h, 30d or 52w, not "${text}"`)
  return duration
}

export const tokenList: Command = {
  help: `Usage: mediabucket token list [--bucket NAME] [--json]

Prints a table; its first column is the id of the token. UPLOADED and LEFT are what was and can be uploaded with a token that has limits,
such as an upload link. The header is printed on a terminal only.

Options:
  --bucket NAME  List only the tokens of this bucket.
  --json         Print one JSON object per line.`,

  async run(args, { config, print, report }) {
    const { values } = parse('token list', {
      args: [...args],
      options: { bucket: { type: 'string' }, json: { type: 'boolean' } },
    })
    const { bucket } = values
    const tokens = await withCatalog(config, async (catalog) => {
      if (bucket !== undefined && (await catalog.findBucketNamed(bucket)) === null)
        throw unknownBucket(bucket)
      return catalog.listTokens(bucket)
    })
    const now = Date.now()
    if (values.json) {
      for (const token of tokens) print(jsonLine(toJson(token, now)))
      return
    }
    if (tokens.length === 0)
      return report('There are no tokens. Create one: mediabucket token create --bucket NAME')
    const listed = tokens.map((token) => ({ ...token, state: state(token, now) }))
    for (const line of table(columns, listed, { header: process.stdout.isTTY })) print(line)
  },
}

interface ListedToken extends TokenRecord {
  readonly state: string
}

const columns = [
  { header: 'ID', cell: ({ id }: TokenRecord) => id },
  { header: 'BUCKET', cell: ({ bucket }: TokenRecord) => bucket },
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

ID is the first column of \`mediabucket token list\` (tok_…). NAME is the name of an active token; it must be unique. Works
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
\`mediabucket token list\` (usr_…), NAME the subject of the user. A token of the service is not restored, because others may know it:
create a new one. Works while the service is running.

Options:
  --bucket NAME  Search only the tokens of this bucket.`,

  async run(args, { config, report }) {
    const { word, bucket } = readTokenArguments('token restore', args)
    const token = await withCatalog(config, async (catalog) => {
      const found = await findToken(catalog, word, bucket, ({ revokedAt }) => revokedAt !== null)
      if (!isUserId(found.id))
        throw new CommandError(
          `${found.id} is a token of the service, and stays revoked, because others may know it. Create a new one: mediabucket token create --bucket ${found.bucket}`,
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
  const [word, ...more] = positionals
  if (word === undefined || word === '' || more.length > 0)
    throw new UsageError(`${command} takes one ID or NAME. See: mediabucket token list`)
  return { word, bucket: values.bucket }
}

const tokenText = ({ id, name, bucket }: TokenRecord): string =>
  `${id}${name === '' ? '' : ` "${name}"`} of the bucket "${bucket}"`

/** Finds a token by its id, else by its name: the one of the state, or the only one. Throws CommandError. */
async function findToken(
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
  const rows = tokens.map(({ id, bucket }) => `  ${id} of the bucket "${bucket}"`)
  return new CommandError(`${tokens.length} tokens have the name "${name}". ${remedy}:\n${rows.join('\n')}`)
}
