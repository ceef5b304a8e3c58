import { CommandError, exitCodes, parse, UsageError } from '@mediabucket/cli/command'
import { nearestName } from '@mediabucket/cli/nearest-name'
import { formatCount, formatSize, jsonLine, table } from '@mediabucket/cli/terminal'
import { type KeyPair, keyPairOf } from '../../access/key-pairs.ts'
import { issueServiceToken } from '../../access/token-operations.ts'
import { bucketNameRule, isBucketName } from '../../core/names.ts'
import type { Amount } from '../../core/quotas.ts'
import { parseDuration } from '../../core/times.ts'
import { isUserId } from '../../core/token-ids.ts'
import {
  defaultScopes,
  isScope,
  isServiceScope,
  type Scope,
  scopes,
  serviceScopes,
} from '../../core/token-rules.ts'
import type { Command } from '../command.ts'
import {
  type AdministrationContext,
  administrationCommand,
  connectionText,
  isRemote,
} from './administration.ts'
import { limitOptions, limitOptionsHelp, limitsOf, limitTexts, noteOf } from './limit-options.ts'
import { unknownBucket, withCatalog, withNewCatalog } from './open-catalog.ts'
import { type ListedToken, withNewTokens, withTokens } from './token-administration.ts'

export const tokenCreate = administrationCommand({
  help: `Usage: mediabucket token create --bucket NAME [--name NAME] [--scope SCOPES] [--expires DURATION]
                                [--s3] [--json] [LIMITS]
       mediabucket token create --service --scope SCOPES [--name NAME] [--expires DURATION] [--s3] [--json]

Prints the token, and nothing else, on standard output. It is not shown again. Works while the service is running.

Options:
  --bucket NAME       The bucket; it is created if it does not exist. Over HTTP, by default that of the token that is used.
                      ${bucketNameRule}
  --name NAME         A name for the token, shown by \`token list\` and accepted by \`token revoke\`.
  --service           Create a service token, which belongs to no bucket: with the scope buckets:manage it creates,
                      sets, lists and deletes buckets over HTTP, and its other scopes are for every bucket. Keep it on servers.
  --scope SCOPES      The scopes of the token, separated by commas. Each is one of: ${scopes.join(', ')}; with
                      --service also buckets:manage. Default: ${defaultScopes.join(', ')}; with --service none.
  --expires DURATION  How long the token is valid: 12h, 30d, 52w. Default: it does not expire.
  --s3                Print instead its keys for the S3 protocol, as AWS_ACCESS_KEY_ID=… and AWS_SECRET_ACCESS_KEY=….
  --json              Print a JSON object with token, and with --s3 also access_key_id and secret_access_key.

Limits of what can be uploaded with the token:
${limitOptionsHelp}`,

  async run(args, context) {
    const { print, report } = context
    const { values } = parse('token create', {
      args: [...args],
      options: {
        bucket: { type: 'string' },
        service: { type: 'boolean' },
        name: { type: 'string' },
        scope: { type: 'string', multiple: true },
        expires: { type: 'string' },
        s3: { type: 'boolean' },
        json: { type: 'boolean' },
        ...limitOptions,
      },
    })
    if (values.service === true) return await createServiceToken(values, context)
    const { bucket } = values
    const limits = limitsOf(values)
    const names = scopeNames(values.scope)
    const mistakes = [
      bucketMistake(bucket, isRemote(context)),
      scopeMistake(names),
      limits !== null && names?.includes('tokens:manage') === true ? limitedManager : null,
    ].filter((text) => text !== null)
    if (mistakes.length > 0) throw new UsageError(mistakes.join('\n'))
    const now = Date.now()
    const request = {
      now,
      name: values.name ?? '',
      scopes: readScopes(names),
      limits,
      note: noteOf(values),
      wantsKeys: values.s3 === true,
      expiresAt: values.expires === undefined ? null : now + readDuration(values.expires, '--expires'),
    }
    await withNewTokens(context, bucket, async (tokens) => {
      const { id, token, bucket, isNewBucket, keys } = await tokens.create(request)
      if (isNewBucket) report(newBucketReport(bucket, await tokens.bucketNames(), connectionText(context)))
      report(
        `Created the token ${id} for the bucket "${bucket}" with the scopes ${request.scopes.join(', ')}${limits === null ? '' : ` and the limits ${limitTexts(limits).join('; ')}`}. ${shownNow(keys, values.json === true)}:`,
      )
      for (const line of secretLines(token, keys, values.json === true)) print(line)
    })
  },
})

/** `token create --service`. */
async function createServiceToken(
  values: Parameters<typeof limitsOf>[0] & {
    readonly bucket?: string
    readonly name?: string
    readonly scope?: readonly string[]
    readonly expires?: string
    readonly s3?: boolean
    readonly json?: boolean
  },
  context: AdministrationContext,
): Promise<void> {
  const names = scopeNames(values.scope) ?? []
  const unknown = names.find((name) => !isServiceScope(name))
  const mistakes = [
    isRemote(context)
      ? 'A service token is created where the service runs: leave out --url, --profile and --token-file.'
      : null,
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
  const { print, report } = context
  const { token, id, keys } = await withNewCatalog(context, async (catalog) => {
    const issued = await issueServiceToken(catalog, request)
    return { ...issued, keys: values.s3 === true ? await keyPairOf(catalog, issued.id, now) : null }
  })
  report(
    `Created the service token ${id} with the scopes ${request.scopes.join(', ')}. ${shownNow(keys, values.json === true)}:`,
  )
  for (const line of secretLines(token, keys, values.json === true)) print(line)
}

/** What is printed of a new token: the token, or its keys for the S3 protocol; with `isJson` both. */
function secretLines(token: string, keys: KeyPair | null, isJson: boolean): readonly string[] {
  if (isJson) return [JSON.stringify({ token, ...keys })]
  return keys === null ? [token] : keyLines(keys)
}

/** The token itself is never printed again, its keys are. */
const shownNow = (keys: KeyPair | null, isJson: boolean): string =>
  keys === null || isJson
    ? 'It is shown only now'
    : 'Its keys for the S3 protocol, which `mediabucket token keys` prints again'

const keyLines = ({ access_key_id, secret_access_key }: KeyPair): readonly string[] => [
  `AWS_ACCESS_KEY_ID=${access_key_id}`,
  `AWS_SECRET_ACCESS_KEY=${secret_access_key}`,
]

export const tokenKeys: Command = {
  help: `Usage: mediabucket token keys ID|NAME [--bucket NAME] [--json]

Prints the keys with which programs use the token over the S3 protocol, as AWS_ACCESS_KEY_ID=… and AWS_SECRET_ACCESS_KEY=….
They follow from the id of the token and the newest key that signs links, and are valid as long as both exist. ID is the
first column of \`mediabucket token list\` (tok_… or svc_…). Works while the service is running.

Options:
  --bucket NAME  Search only the tokens of this bucket.
  --json         Print a JSON object with access_key_id and secret_access_key.`,

  async run(args, { config, print }) {
    const { values, positionals } = parse('token keys', {
      args: [...args],
      allowPositionals: true,
      options: { bucket: { type: 'string' }, json: { type: 'boolean' } },
    })
    const { bucket } = values
    const word = requireWord('token keys', positionals)
    const keys = await withCatalog(config, async (catalog) => {
      if (bucket !== undefined && (await catalog.findBucketNamed(bucket)) === null)
        throw unknownBucket(bucket)
      const found = findToken(
        await catalog.listTokens(bucket),
        word,
        bucket,
        ({ revokedAt }) => revokedAt === null,
      )
      if (isUserId(found.id))
        throw new CommandError(
          `${found.id} is a user of the issuer, which has no keys. Create a token: mediabucket token create --s3`,
        )
      return await keyPairOf(catalog, found.id, Date.now())
    })
    if (values.json === true) print(JSON.stringify(keys))
    else for (const line of keyLines(keys)) print(line)
  },
}

const scopeNames = (lists: readonly string[] | undefined): readonly string[] | undefined =>
  lists?.flatMap((list) => list.split(',').map((scope) => scope.trim()))

const limitedManager = 'A token with limits cannot have the scope tokens:manage.'

/** The name may be mistyped. */
function newBucketReport(name: string, names: readonly string[], connection: string): string {
  const similar = nearestName(
    name,
    names.filter((other) => other !== name),
  )
  const created = `Created the bucket "${name}", because there was none of this name.`
  return similar === null
    ? created
    : `${created} Did you mean "${similar}"? To remove the new one: mediabucket bucket delete ${name}${connection}`
}

function bucketMistake(bucket: string | undefined, isOptional: boolean): string | null {
  if (bucket === undefined)
    return isOptional ? null : 'token create needs --bucket NAME. See: mediabucket token create --help'
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

export const tokenList = administrationCommand({
  help: `Usage: mediabucket token list [--bucket NAME | --service] [--json]

Prints a table; its first column is the id of the token. The bucket of a service token is ${serviceMark}. UPLOADED and LEFT
are what was and can be uploaded with a token that has limits, such as an upload link. The header is printed on a terminal only.

Options:
  --bucket NAME  List only the tokens of this bucket.
  --service      List only the service tokens. Not over HTTP.
  --json         Print one JSON object per line.`,

  async run(args, context) {
    const { print, report } = context
    const { values } = parse('token list', {
      args: [...args],
      options: { bucket: { type: 'string' }, service: { type: 'boolean' }, json: { type: 'boolean' } },
    })
    const { bucket, service = false } = values
    if (service && bucket !== undefined)
      throw new UsageError('token list takes --bucket or --service, not both')
    if (service && isRemote(context))
      throw new UsageError('service tokens are listed where the service runs: use --service without --url')
    await withTokens(context, bucket, async (tokens) => {
      const listed = (await tokens.list()).filter((token) => !service || token.bucket === null)
      const now = Date.now()
      if (values.json) for (const token of listed) print(jsonLine(toJson(token, now)))
      else if (listed.length === 0)
        report(
          `There are no tokens. Create one: mediabucket token create ${service ? '--service --scope buckets:manage' : '--bucket NAME'}${connectionText(context)}`,
        )
      else {
        const rows = listed.map((token) => ({ ...token, state: state(token, now) }))
        for (const line of table(columns, rows, { header: process.stdout.isTTY })) print(line)
      }
    })
  },
})

const columns = [
  { header: 'ID', cell: ({ id }: ListedToken) => id },
  { header: 'BUCKET', cell: ({ bucket }: ListedToken) => bucket ?? serviceMark },
  { header: 'NAME', cell: ({ name }: ListedToken) => name || '-' },
  { header: 'STATE', cell: (token: ListedToken & { readonly state: string }) => token.state },
  { header: 'SCOPES', cell: ({ scopes }: ListedToken) => scopes.join(',') },
  { header: 'CREATED', cell: ({ created_at: time }: ListedToken) => day(time) },
  { header: 'EXPIRES', cell: ({ expires_at: time }: ListedToken) => day(time) },
  { header: 'LAST USED', cell: ({ last_used_at: time }: ListedToken) => day(time) },
  { header: 'UPLOADED', cell: ({ uploaded }: ListedToken) => uploadedText(uploaded) },
  { header: 'LEFT', cell: ({ left }: ListedToken) => leftText(left) },
]

const day = (time: string | null): string => time?.slice(0, 10) ?? 'never'

const state = ({ revoked_at: revoked, expires_at: expires }: ListedToken, now: number) =>
  revoked !== null ? 'revoked' : expires !== null && Date.parse(expires) <= now ? 'expired' : 'active'

const uploadedText = (used: Amount | null): string =>
  used === null ? '-' : `${formatCount(used.items, 'item')}, ${formatSize(used.bytes)}`

/** Without what unfinished uploads have reserved. */
function leftText(left: ListedToken['left']): string {
  if (left === null) return '-'
  const texts = [
    ...(left.items === null ? [] : [formatCount(left.items, 'item')]),
    ...(left.bytes === null ? [] : [formatSize(left.bytes)]),
  ]
  return texts.length === 0 ? 'any' : texts.join(', ')
}

const toJson = (token: ListedToken, now: number) => ({
  id: token.id,
  bucket: token.bucket,
  name: token.name,
  state: state(token, now),
  scopes: token.scopes,
  created_at: token.created_at,
  expires_at: token.expires_at,
  last_used_at: token.last_used_at,
  revoked_at: token.revoked_at,
  note: token.note,
  limits: token.limits,
  uploaded: token.uploaded,
})

export const tokenRevoke = administrationCommand({
  help: `Usage: mediabucket token revoke ID|NAME [--bucket NAME]

ID is the first column of \`mediabucket token list\` (tok_…, svc_… or usr_…). NAME is the name of an active token; it must be unique. Works
while the service is running.

Options:
  --bucket NAME  Search only the tokens of this bucket.`,

  async run(args, context) {
    const { word, bucket } = readTokenArguments('token revoke', args)
    await withTokens(context, bucket, async (tokens) => {
      const found = findToken(await tokens.list(), word, bucket, ({ revoked_at }) => revoked_at === null)
      await tokens.revoke(found)
      context.report(`Revoked the token ${tokenText(found)}.`)
    })
  },
})

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
      if (bucket !== undefined && (await catalog.findBucketNamed(bucket)) === null)
        throw unknownBucket(bucket)
      const records = await catalog.listTokens(bucket)
      const found = findToken(records, word, bucket, ({ revokedAt }) => revokedAt !== null)
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

/** What names a token, of a row or of a response. */
type NamedToken = Pick<ListedToken, 'id' | 'name' | 'bucket'>

export const tokenText = ({ id, name, bucket }: NamedToken): string =>
  `${id}${name === '' ? '' : ` "${name}"`} of ${ownerText(bucket)}`

const ownerText = (bucket: string | null): string =>
  bucket === null ? 'the service' : `the bucket "${bucket}"`

/** Finds a token by its id, else by its name: the one of the state, or the only one. Throws CommandError. */
export function findToken<Token extends NamedToken>(
  tokens: readonly Token[],
  idOrName: string,
  bucket: string | undefined,
  hasState: (token: Token) => boolean,
): Token {
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

function ambiguousName(name: string, tokens: readonly NamedToken[]): CommandError {
  const buckets = new Set(tokens.map(({ bucket }) => bucket))
  const remedy =
    buckets.size === tokens.length ? 'Pass --bucket NAME or one of the ids' : 'Pass one of the ids'
  const rows = tokens.map(({ id, bucket }) => `  ${id} of ${ownerText(bucket)}`)
  return new CommandError(`${tokens.length} tokens have the name "${name}". ${remedy}:\n${rows.join('\n')}`)
}
