import { bucketDeleted } from '../../core/fault.ts'
import type { ItemOrder } from '../../core/items-query.ts'
import { itemColumns, readItem } from '../item-columns.ts'
import type { ItemPlace, ItemRows, ItemSelection } from '../records.ts'
import { integer, type Row } from '../rows.ts'

type Run = (statement: string, ...values: unknown[]) => Promise<Row[]>

/** One statement, and so one snapshot. A row without an item is that of a bucket from which none is selected. */
const inOrder = (condition: string, direction: string) =>
  `SELECT item.*, buckets.revision FROM buckets LEFT JOIN LATERAL (
    SELECT ${itemColumns}, seq FROM media WHERE bucket_id = buckets.id AND ${condition}
    ORDER BY seq ${direction} LIMIT $3
  ) AS item ON true
  WHERE buckets.id = $1 ORDER BY item.seq ${direction}`

const statements: Readonly<Record<ItemOrder, string>> = {
  oldest: inOrder('seq > $2', 'ASC'),
  newest: inOrder('seq < $2', 'DESC'),
}
const begins: Readonly<Record<ItemOrder, number>> = { oldest: -1, newest: Number.MAX_SAFE_INTEGER }

/** Reads items as Catalog.items. */
export async function readItems(
  run: Run,
  { bucketId, order }: ItemSelection,
  after: ItemPlace | null,
  limit: number,
): Promise<ItemRows> {
  const rows = await run(statements[order], bucketId, after?.seq ?? begins[order], limit)
  const [first] = rows
  if (first === undefined) throw bucketDeleted()
  return {
    revision: integer(first, 10),
    rows: rows.flatMap((row) => (row[9] === null ? [] : [{ item: readItem(row), seq: integer(row, 9) }])),
  }
}
