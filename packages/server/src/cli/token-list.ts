import type { TokenRecord } from '../catalog/tokens.ts'
import { parse } from './arguments.ts'
import { jsonLine } from './client/terminal-text.ts'
import type { Command } from './command.ts'
import { unknownBucket, withCatalog } from './open-catalog.ts'
import { table } from './table.ts'

export const tokenList: Command = {
  help: `Usage: mediabucket token list [--bucket NAME] [--json]

Prints a table; its first column is the id of the token. The header is printed on a terminal only.

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
      if (bucket !== undefined && (await catalog.bucketNamed(bucket)) === null) throw unknownBucket(bucket)
      return catalog.tokens(bucket)
    })
    const now = Date.now()
    if (values.json) {
      for (const token of tokens) print(jsonLine(toJson(token, now)))
      return
    }
    if (tokens.length === 0)
      return report('There are no tokens. Create one: mediabucket token create --bucket NAME')
    const columns = [
      { header: 'ID', cell: ({ id }: TokenRecord) => id },
      { header: 'BUCKET', cell: ({ bucket }: TokenRecord) => bucket },
      { header: 'NAME', cell: ({ name }: TokenRecord) => name || '-' },
      { header: 'STATE', cell: (token: TokenRecord) => state(token, now) },
      { header: 'SCOPES', cell: ({ scopes }: TokenRecord) => scopes.join(',') },
      { header: 'CREATED', cell: ({ createdAt }: TokenRecord) => day(createdAt) },
      { header: 'EXPIRES', cell: ({ expiresAt }: TokenRecord) => day(expiresAt) },
      { header: 'LAST USED', cell: ({ lastUsedAt }: TokenRecord) => day(lastUsedAt) },
    ]
    for (const line of table(columns, tokens, { header: process.stdout.isTTY })) print(line)
  },
}

const iso = (time: number | null) => (time === null ? null : new Date(time).toISOString())
const day = (time: number | null) => iso(time)?.slice(0, 10) ?? 'never'

const state = ({ revokedAt, expiresAt }: TokenRecord, now: number) =>
  revokedAt !== null ? 'revoked' : expiresAt !== null && expiresAt <= now ? 'expired' : 'active'

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
})
