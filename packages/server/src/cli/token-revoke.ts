import type { TokenId } from '../catalog/catalog.ts'
import { parse } from './arguments.ts'
import { type Command, CommandError, UsageError } from './command.ts'
import { withCatalog } from './open-catalog.ts'

export const tokenRevoke: Command = {
  summary: 'Revoke a token; it fails from the next request on.',
  help: `Usage: mediabucket token revoke ID

ID is what \`mediabucket token list\` shows in its first column (tok_…). Works beside a running server.`,

  async run(args, { config, tell }) {
    const { positionals } = parse('token revoke', { args: [...args], allowPositionals: true, options: {} })
    const [id, ...more] = positionals
    if (id === undefined || more.length > 0)
      throw new UsageError('token revoke takes one ID; see: mediabucket token list')
    const known = await withCatalog(config, async (catalog) => catalog.revokeToken(id as TokenId, Date.now()))
    if (!known) throw new CommandError(`there is no token ${id}; see: mediabucket token list`)
    tell(`Revoked ${id}.`)
  },
}
