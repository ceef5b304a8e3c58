import type { Catalog } from '../catalog/catalog.ts'
import type { TokenRecord } from '../catalog/tokens.ts'
import { parse } from './arguments.ts'
import { type Command, CommandError, exitCodes, UsageError } from './command.ts'
import { unknownBucket, withCatalog } from './open-catalog.ts'

export const tokenRevoke: Command = {
  help: `Usage: mediabucket token revoke ID|NAME [--bucket NAME]

ID is the first column of \`mediabucket token list\` (tok_…). NAME is the name of an active token; it must be unique. Works
while the service is running.

Options:
  --bucket NAME  Search only the tokens of this bucket.`,

  async run(args, { config, report }) {
    const { values, positionals } = parse('token revoke', {
      args: [...args],
      allowPositionals: true,
      options: { bucket: { type: 'string' } },
    })
    const [word, ...more] = positionals
    if (word === undefined || word === '' || more.length > 0)
      throw new UsageError('token revoke takes one ID or NAME. See: mediabucket token list')
    const token = await withCatalog(config, async (catalog) => {
      const found = await findToken(catalog, word, values.bucket)
      await catalog.revokeToken(found.id, Date.now())
      return found
    })
    const name = token.name === '' ? '' : ` "${token.name}"`
    report(`Revoked the token ${token.id}${name} of the bucket "${token.bucket}".`)
  },
}

/** Finds a token by its id, else by its name: the active one, or the only one. Throws CommandError. */
async function findToken(
  catalog: Pick<Catalog, 'tokens' | 'bucketNamed'>,
  idOrName: string,
  bucket: string | undefined,
): Promise<TokenRecord> {
  if (bucket !== undefined && (await catalog.bucketNamed(bucket)) === null) throw unknownBucket(bucket)
  const tokens = await catalog.tokens(bucket)
  const named = tokens.filter(({ name }) => name === idOrName)
  const active = named.filter(({ revokedAt }) => revokedAt === null)
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
