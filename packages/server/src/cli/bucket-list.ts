import type { Bucket, TrashState } from '../catalog/records.ts'
import { parse } from './arguments.ts'
import { formatSize, jsonLine } from './client/terminal-text.ts'
import type { Command } from './command.ts'
import { withCatalog } from './open-catalog.ts'
import { table } from './table.ts'

export const bucketList: Command = {
  help: `Usage: mediabucket bucket list [--json]

Prints a table; its first column is the name of the bucket. The header is printed on a terminal only.

Options:
  --json  Print one JSON object per line, with sizes in bytes.`,

  async run(args, { config, print, report }) {
    const { values } = parse('bucket list', { args: [...args], options: { json: { type: 'boolean' } } })
    const buckets = await withCatalog(config, async (catalog) => {
      const listed: ListedBucket[] = []
      for (const bucket of await catalog.buckets()) {
        const named = await catalog.bucketNamed(bucket.name)
        // Null if it was deleted in between.
        if (named !== null) listed.push({ ...bucket, trash: await catalog.trashState(named.id) })
      }
      return listed
    })
    if (values.json) {
      for (const bucket of buckets) print(jsonLine(toJson(bucket)))
      return
    }
    if (buckets.length === 0)
      return report('There are no buckets. Create one: mediabucket bucket create NAME')
    for (const line of table(columns, buckets, { header: process.stdout.isTTY })) print(line)
  },
}

interface ListedBucket extends Bucket {
  readonly trash: TrashState
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
  { header: 'ACCESS', cell: ({ isPrivate }: Bucket) => (isPrivate ? 'private' : 'public') },
]

const toJson = ({
  name,
  items,
  bytes,
  reservedItems,
  reservedBytes,
  maxItems,
  maxBytes,
  isPrivate,
  signedPages,
  removesMetadata,
  itemDays,
  trash,
}: ListedBucket) => ({
  name,
  items,
  bytes,
  reserved_items: reservedItems,
  reserved_bytes: reservedBytes,
  max_items: maxItems,
  max_bytes: maxBytes,
  trash_days: trash.days,
  trash_items: trash.items,
  trash_bytes: trash.bytes,
  private: isPrivate,
  signed_pages: signedPages,
  remove_metadata: removesMetadata,
  item_days: itemDays,
})
