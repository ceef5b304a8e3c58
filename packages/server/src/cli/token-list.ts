import type { TokenRecord } from '../catalog/catalog.ts'
import { parse } from './arguments.ts'
import { columns } from './columns.ts'
import type { Command } from './command.ts'
import { withCatalog } from './open-catalog.ts'

export const tokenList: Command = {
  summary: 'List the tokens, never their secrets.',
  help: `Usage: mediabucket token list [--bucket NAME] [--json]

Options:
  --bucket NAME  Only the tokens of this bucket.
  --json         One JSON object a line.`,

  async run(args, { config, print, tell }) {
    const { values } = parse('token list', {
      args: [...args],
      options: { bucket: { type: 'string' }, json: { type: 'boolean' } },
    })
    const tokens = await withCatalog(config, (catalog) => catalog.tokens(values.bucket))
    const now = Date.now()
    if (values.json) {
      for (const token of tokens) print(JSON.stringify(wire(token, now)))
      return
    }
    if (tokens.length === 0)
      return tell('There are no tokens. Make one: mediabucket token create --bucket NAME')
    const rows = tokens.map((token) => [
      token.id,
      token.bucket,
      token.name,
      state(token, now),
      token.scopes.join(','),
      `created ${day(token.createdAt)}`,
      token.expiresAt === null ? 'no expiry' : `expires ${day(token.expiresAt)}`,
      token.lastUsedAt === null ? 'never used' : `used ${day(token.lastUsedAt)}`,
    ])
    for (const line of columns(rows)) print(line)
  },
}

const day = (time: number) => new Date(time).toISOString().slice(0, 10)
const iso = (time: number | null) => (time === null ? null : new Date(time).toISOString())

const state = ({ revokedAt, expiresAt }: TokenRecord, now: number) =>
  revokedAt !== null ? 'revoked' : expiresAt !== null && expiresAt <= now ? 'expired' : 'active'

const wire = (token: TokenRecord, now: number) => ({
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
