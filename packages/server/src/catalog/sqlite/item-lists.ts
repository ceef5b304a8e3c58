import type { DatabaseSync } from 'node:sqlite'
import { bucketDeleted } from '../../core/fault.ts'
import type { ItemOrder } from '../../core/items-query.ts'
import { itemColumns, readItem } from '../item-columns.ts'
import type { ItemPlace, ItemRows, ItemSelection } from '../records.ts'
import { integer } from '../rows.ts'
import { all, one } from './rows.ts'

/** Reads items as Catalog.items; to be called within a transaction. */
export function prepareReadItems(
  db: DatabaseSync,
): (selection: ItemSelection, after: ItemPlace | null, limit: number) => ItemRows {
  const bucket = db.prepare('SELECT revision FROM buckets WHERE id = ?')
  const inOrder = (condition: string) =>
    db.prepare(`SELECT ${itemColumns}, seq FROM media WHERE bucket_id = ? AND ${condition} LIMIT ?`)
  const statements = {
    oldest: inOrder('seq > ? ORDER BY seq'),
    newest: inOrder('seq < ? ORDER BY seq DESC'),
  }
  const begins: Readonly<Record<ItemOrder, number>> = { oldest: -1, newest: Number.MAX_SAFE_INTEGER }

  return ({ bucketId, order }, after, limit) => {
    const row = one(bucket, bucketId)
    if (!row) throw bucketDeleted()
    const rows = all(statements[order], bucketId, after?.seq ?? begins[order], limit)
    return {
      revision: integer(row, 0),
      rows: rows.map((row) => ({ item: readItem(row), seq: integer(row, 9) })),
    }
  }
}
