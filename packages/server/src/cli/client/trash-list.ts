import { parse } from '../arguments.ts'
import { table } from '../table.ts'
import { clientCommand } from './client-command.ts'
import { formatSize } from './terminal-text.ts'

export const trashList = clientCommand({
  help: `Usage: mediabucket trash list [--json]

Prints the items in the trash of the bucket, last deleted first: id, size, time of deletion, time until which they can be restored,
and name.

Options:
  --json  Print one JSON object per line.`,

  read: (args) => parse('trash list', { args: [...args], options: { json: { type: 'boolean' } } }).values,

  async run({ json }, { client, output, interrupted }) {
    for await (const item of client.trash({ signal: interrupted })) {
      const row = { ...item, filename: JSON.stringify(item.filename ?? '') }
      await (json ? output.json([item]) : output.lines(table(columns, [row], { header: false })))
    }
  },
})

interface Row {
  readonly id: string
  readonly size: number
  readonly deleted_at: string
  readonly expires_at: string
  readonly filename: string
}

const columns = [
  { header: 'ID', cell: ({ id }: Row) => id },
  { header: 'SIZE', cell: ({ size }: Row) => formatSize(size) },
  { header: 'DELETED', cell: ({ deleted_at }: Row) => deleted_at },
  { header: 'UNTIL', cell: ({ expires_at }: Row) => expires_at },
  { header: 'NAME', cell: ({ filename }: Row) => filename },
]
