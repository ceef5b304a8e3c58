import { parse } from '../arguments.ts'
import { alignColumns } from '../table.ts'
import { clientCommand } from './client-command.ts'

export const whoami = clientCommand({
  help: `Usage: mediabucket whoami [--json]

Shows the service, and the bucket, the scopes and the expiry of the token. Never prints the token itself.

Options:
  --json  Print the JSON object of the service.`,

  read: (args) => parse('whoami', { args: [...args], options: { json: { type: 'boolean' } } }).values,

  async run({ json }, { client, url, output, interrupted }) {
    const token = await client.whoami({ signal: interrupted })
    if (json) return await output.json([token])
    const rows = [
      ['service', url],
      ['token', token.id],
      ['name', token.name || '(none)'],
      ['bucket', token.bucket],
      ['scopes', token.scopes.join(', ')],
      ['created', token.created_at],
      ['expires', token.expires_at ?? 'never'],
    ]
    await output.lines(alignColumns(rows))
  },
})
