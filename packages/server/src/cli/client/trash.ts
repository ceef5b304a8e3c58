import { parse } from '../arguments.ts'
import { CommandError, exitCodes, UsageError } from '../command.ts'
import { formatCount, table } from '../table.ts'
import { clientCommand } from './client-command.ts'
import { itemReference } from './item-reference.ts'
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

export const trashRestore = clientCommand({
  help: `Usage: mediabucket trash restore ID|URL …

Restores items from the trash with their earlier URLs and places. Items that are not in the trash are reported, the others are
restored, and the exit code is ${exitCodes.notFound}.`,

  read(args) {
    const { positionals } = parse('trash restore', { args: [...args], allowPositionals: true, options: {} })
    if (positionals.length === 0)
      throw new UsageError('trash restore takes the IDs or URLs of items. See: mediabucket trash list')
    return positionals.map(itemReference)
  },

  async run(references, { client, report, interrupted }) {
    const { restored, missing } = await client.restore(references, { signal: interrupted })
    for (const reference of restored) report(`Restored ${reference}`)
    for (const reference of missing) report(`mediabucket: ${reference}: The trash has no such item.`)
    if (missing.length > 0)
      throw new CommandError(
        `${missing.length} of ${formatCount(references.length, 'item')} ${missing.length === 1 ? 'is' : 'are'} not in the trash. See: mediabucket trash list`,
        exitCodes.notFound,
      )
  },
})

export const trashEmpty = clientCommand({
  help: `Usage: mediabucket trash empty

Deletes the items in the trash of the bucket permanently, without confirmation.`,

  read: (args) => parse('trash empty', { args: [...args], options: {} }),

  async run(_arguments, { client, report, interrupted }) {
    await client.emptyTrash({ signal: interrupted })
    report('Emptied the trash.')
  },
})
