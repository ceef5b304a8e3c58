import { issueToken } from '../access/issue-token.ts'
import { bucketNameRule, isBucketName } from '../core/bucket-name.ts'
import { parseDuration } from '../core/duration.ts'
import { defaultScopes, isScope, type Scope, scopes } from '../core/scopes.ts'
import { parse } from './arguments.ts'
import { type Command, UsageError } from './command.ts'
import { withNewCatalog } from './open-catalog.ts'

export const tokenCreate: Command = {
  summary: 'Make a token for a bucket, and the bucket if need be.',
  help: `Usage: mediabucket token create --bucket NAME [--name NAME] [--scope SCOPE …] [--expires DURATION]

Prints the token alone on standard output; it is not shown again. Works beside a running server.

Options:
  --bucket NAME       The bucket; it is made if it does not exist. ${bucketNameRule}
  --name NAME         A name to know the token by in \`token list\`.
  --scope SCOPE       What the token may do; give it once for each. One of: ${scopes.join(', ')}.
                      Without it: ${defaultScopes.join(', ')}.
  --expires DURATION  When the token ends, from now: 12h, 30d, 52w. Without it, never.`,

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
    if (bucket === undefined) throw new UsageError('token create needs --bucket NAME')
    if (!isBucketName(bucket)) throw new UsageError(`"${bucket}" is no name for a bucket. ${bucketNameRule}`)
    const now = Date.now()
    const request = {
      bucket,
      name: values.name ?? '',
      scopes: readScopes(values.scope),
      expiresAt: values.expires === undefined ? null : now + readExpiry(values.expires),
      now,
    }
    const { token, id } = await withNewCatalog(config, (catalog) => issueToken(catalog, request))
    report(`Token ${id} for the bucket "${bucket}": ${request.scopes.join(', ')}. It is shown this once:`)
    print(token)
  },
}

function readScopes(names: readonly string[] | undefined): readonly Scope[] {
  if (names === undefined) return defaultScopes
  return scopes.filter((scope) => {
    const stranger = names.find((name) => !isScope(name))
    if (stranger !== undefined)
      throw new UsageError(`"${stranger}" is no scope; there are ${scopes.join(', ')}`)
    return names.includes(scope)
  })
}

function readExpiry(text: string): number {
  const duration = parseDuration(text)
  if (duration === null)
    throw new UsageError(`--expires takes a duration such as 12h, 30d or 52w, not "${text}"`)
  return duration
}
