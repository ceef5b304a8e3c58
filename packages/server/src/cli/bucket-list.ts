import type { Bucket } from '../catalog/records.ts'
import { parse } from './arguments.ts'
import { formatSize } from './client/terminal-text.ts'
import type { Command } from './command.ts'
import { withCatalog } from './open-catalog.ts'
import { table } from './table.ts'

export const bucketList: Command = {
  summary: 'List the buckets with their numbers of items, sizes and quotas.',
  help: `Usage: mediabucket bucket list [--json]

Prints a table; its first column is the name of the bucket. The header is printed on a terminal only.

Options:
  --json  Print one JSON object per line, with sizes in bytes.`,

  async run(args, { config, print, report }) {
    const { values } = parse('bucket list', { args: [...args], options: { json: { type: 'boolean' } } })
    const buckets = await withCatalog(config, (catalog) => catalog.buckets())
    if (values.json) {
      for (const bucket of buckets) print(JSON.stringify(toJson(bucket)))
      return
    }
    if (buckets.length === 0)
      return report('There are no buckets. Create one: mediabucket bucket create NAME')
    for (const line of table(columns, buckets, { header: process.stdout.isTTY })) print(line)
  },
}

const columns = [
  { header: 'BUCKET', cell: ({ name }: Bucket) => name },
  { header: 'ITEMS', cell: ({ items }: Bucket) => `${items}`, alignRight: true },
  { header: 'MAX ITEMS', cell: ({ maxItems }: Bucket) => `${maxItems ?? 'none'}`, alignRight: true },
  { header: 'SIZE', cell: ({ bytes }: Bucket) => formatSize(bytes), alignRight: true },
  {
    header: 'MAX SIZE',
    cell: ({ maxBytes }: Bucket) => (maxBytes === null ? 'none' : formatSize(maxBytes)),
    alignRight: true,
  },
]

const toJson = ({ name, items, bytes, reservedItems, reservedBytes, maxItems, maxBytes }: Bucket) => ({
  name,
  items,
  bytes,
  reserved_items: reservedItems,
  reserved_bytes: reservedBytes,
  max_items: maxItems,
  max_bytes: maxBytes,
})
