import { parse } from '../arguments.ts'
import { columns } from '../columns.ts'
import { clientCommand } from './client-command.ts'

export const whoami = clientCommand({
  summary: 'Tell what the token is: its bucket, what it may do, when it ends.',
  help: `Usage: mediabucket whoami [--json]

Asks the service what MEDIABUCKET_TOKEN is. It never prints the token itself.

Options:
  --json  One JSON object, as the service answers it.`,

  read: (args) => parse('whoami', { args: [...args], options: { json: { type: 'boolean' } } }).values,

  async run({ json }, { client, output, interrupted }) {
    const token = await client.whoami({ signal: interrupted })
    if (json) return await output.write(`${JSON.stringify(token)}\n`)
    const rows = [
      ['token', token.id],
      ['name', token.name || '(none)'],
      ['bucket', token.bucket],
      ['may', token.scopes.join(', ')],
      ['made', token.created_at],
      ['ends', token.expires_at ?? 'never'],
    ]
    await output.write(`${columns(rows).join('\n')}\n`)
  },
})
