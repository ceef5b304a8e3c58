import type { Bucket } from '../catalog/catalog.ts'
import { parse } from './arguments.ts'
import { shownSize } from './client/shown.ts'
import { columns } from './columns.ts'
import type { Command } from './command.ts'
import { withCatalog } from './open-catalog.ts'

export const bucketList: Command = {
  summary: 'List the buckets: what they hold and may hold.',
  help: `Usage: mediabucket bucket list [--json]

Options:
  --json  One JSON object a line, with exact bytes.`,

  async run(args, { config, print, tell }) {
    const { values } = parse('bucket list', { args: [...args], options: { json: { type: 'boolean' } } })
    const buckets = await withCatalog(config, (catalog) => catalog.buckets())
    if (values.json) {
      for (const bucket of buckets) print(JSON.stringify(wire(bucket)))
      return
    }
    if (buckets.length === 0)
      return tell('There are no buckets. Make one: mediabucket token create --bucket NAME')
    const rows = buckets.map(({ name, items, bytes, maxItems, maxBytes }) => [
      name,
      counted(items),
      maxItems === null ? 'no limit' : `at most ${maxItems}`,
      shownSize(bytes),
      maxBytes === null ? 'no limit' : `at most ${shownSize(maxBytes)}`,
    ])
    for (const line of columns(rows)) print(line)
  },
}

const counted = (items: number): string => (items === 1 ? '1 item' : `${items} items`)

const wire = ({ name, items, bytes, reservedItems, reservedBytes, maxItems, maxBytes }: Bucket) => ({
  name,
  items,
  bytes,
  reserved_items: reservedItems,
  reserved_bytes: reservedBytes,
  max_items: maxItems,
  max_bytes: maxBytes,
})
