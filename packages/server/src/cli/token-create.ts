import { issueToken } from '../access/issue-token.ts'
import { bucketNameRule, isBucketName } from '../core/bucket-name.ts'
import { parseDuration } from '../core/duration.ts'
import { nearestName } from '../core/nearest-name.ts'
import { defaultScopes, isScope, type Scope, scopes } from '../core/scopes.ts'
import { parse } from './arguments.ts'
import { type Command, UsageError } from './command.ts'
import { withNewCatalog } from './open-catalog.ts'

export const tokenCreate: Command = {
  help: `Usage: mediabucket token create --bucket NAME [--name NAME] [--scope SCOPES] [--expires DURATION]

Prints the token, and nothing else, on standard output. It is not shown again. Works while the service is running.

Options:
  --bucket NAME       The bucket; it is created if it does not exist. ${bucketNameRule}
  --name NAME         A name for the token, shown by \`token list\` and accepted by \`token revoke\`.
  --scope SCOPES      The scopes of the token, separated by commas. Each is one of: ${scopes.join(', ')}.
                      Default: ${defaultScopes.join(', ')}.
  --expires DURATION  How long the token is valid: 12h, 30d, 52w. Default: it does not expire.`,

  async run(args, { config, print, report }) {
    const { values } = parse('token create', {
      args: [...args],
      options: {
        bucket: { type: 'string' },
        name: { type: 'string' },
        scope: { type: 'string', multiple: true },
        expires: { type: 'string' },
      },
    })
    const { bucket } = values
    const names = values.scope?.flatMap((list) => list.split(',').map((scope) => scope.trim()))
    const mistakes = [bucketMistake(bucket), scopeMistake(names)].filter((text) => text !== null)
    if (bucket === undefined || mistakes.length > 0) throw new UsageError(mistakes.join('\n'))
    const now = Date.now()
    const request = {
      bucket,
      name: values.name ?? '',
      scopes: readScopes(names),
      expiresAt: values.expires === undefined ? null : now + readExpiry(values.expires),
      now,
    }
    const { token, id } = await withNewCatalog({ config, report }, async (catalog) => {
      const issued = await issueToken(catalog, request)
      if (issued.isNewBucket) report(newBucketReport(bucket, await catalog.buckets()))
      return issued
    })
    report(
      `Created the token ${id} for the bucket "${bucket}" with the scopes ${request.scopes.join(', ')}. It is shown only now:`,
    )
    print(token)
  },
}

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

function readExpiry(text: string): number {
  const duration = parseDuration(text)
  if (duration === null)
    throw new UsageError(`--expires takes a duration such as 12h, 30d or 52w, not "${text}"`)
  return duration
}
