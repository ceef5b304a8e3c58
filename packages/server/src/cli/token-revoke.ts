import type { Catalog, TokenRecord } from '../catalog/catalog.ts'
import { parse } from './arguments.ts'
import { printableText } from './client/terminal-text.ts'
import { type Command, CommandError, UsageError } from './command.ts'
import { withCatalog } from './open-catalog.ts'

export const tokenRevoke: Command = {
  summary: 'Revoke a token; it fails from the next request on.',
  help: `Usage: mediabucket token revoke ID|NAME [--bucket NAME]

ID is what \`mediabucket token list\` shows in its first column (tok_…). NAME is the name of one active token. Works
beside a running server.

Options:
  --bucket NAME  Look for the name among the tokens of this bucket.`,

  async run(args, { config, report }) {
    const { values, positionals } = parse('token revoke', {
      args: [...args],
      allowPositionals: true,
      options: { bucket: { type: 'string' } },
    })
    const [word, ...more] = positionals
    if (word === undefined || word === '' || more.length > 0)
      throw new UsageError('token revoke takes one ID or NAME; see: mediabucket token list')
    const token = await withCatalog(config, async (catalog) => {
      const found = await findToken(catalog, word, values.bucket)
      await catalog.revokeToken(found.id, Date.now())
      return found
    })
    const name = token.name === '' ? '' : ` "${printableText(token.name)}"`
    report(`Revoked the token ${token.id}${name} of the bucket "${token.bucket}".`)
  },
}

/** By its id, or else by its name: the active one, or the only one. Throws CommandError. */
async function findToken(
  catalog: Pick<Catalog, 'tokens'>,
  word: string,
  bucket: string | undefined,
): Promise<TokenRecord> {
  const tokens = await catalog.tokens(bucket)
  const named = tokens.filter(({ name }) => name === word)
  const active = named.filter(({ revokedAt }) => revokedAt === null)
  const [found, ...others] =
    [tokens.filter(({ id }) => id === word), active, named].find((all) => all.length > 0) ?? []
  if (found === undefined)
    throw new CommandError(`there is no token ${printableText(word)}; see: mediabucket token list`)
  if (others.length > 0) {
    const rows = [found, ...others].map((token) => `  ${token.id} of the bucket "${token.bucket}"`)
    throw new CommandError(
      `several tokens have the name "${printableText(word)}"; pass --bucket NAME or one of these ids:\n${rows.join('\n')}`,
    )
  }
  return found
}
