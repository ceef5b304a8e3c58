import { beforeKey, endOf } from '../../../core/object-key-rules.ts'
import { itemRowColumnCount, itemRowColumns, readItemRow } from '../items/item-rows.ts'
import type { ItemSelection } from '../records.ts'
import { all, bytes, type Row } from '../statements.ts'
import { filtersAmong } from './item-filters.ts'
import { orders, placeOf } from './item-lists.ts'
import type { Source } from './item-scan.ts'

const statements = {
  oldest: statementOf(orders.oldest.direction),
  newest: statementOf(orders.newest.direction),
}

function statementOf(direction: 'ASC' | 'DESC'): string {
  return `SELECT ${itemRowColumns}, key FROM (SELECT key, item_id FROM object_keys
      WHERE object_keys.bucket_id = $1 AND key > $2 AND key < $3 ORDER BY key ${direction} LIMIT $4) AS keyed
    JOIN items ON items.id = keyed.item_id ORDER BY key ${direction}`
}

const readRow = (row: Row) => ({
  ...readItemRow(row),
  key: Buffer.from(bytes(row, itemRowColumnCount)).toString(),
})

/** Reads the items whose keys begin with a text, in the order of the bytes of their keys (docs/interface.md K21). */
export function createKeySource(selection: ItemSelection): Source {
  const { bucketId, order, key = null } = selection
  const [first, end] = [beforeKey(key ?? ''), endOf(key ?? '')]
  return {
    bucketId,
    compared: filtersAmong(selection, new Set(['key'])),
    isSparse: false,
    open: () =>
      function* read(after, { count }) {
        const place = after?.key == null ? null : Buffer.from(after.key)
        const range = order === 'oldest' ? [place ?? first, end] : [first, place ?? end]
        const rows = yield* all(readRow, statements[order], bucketId, ...range, count)
        const last = rows.at(-1)
        const isFull = rows.length === count
        return {
          rows,
          last: isFull && last !== undefined ? placeOf({}, last) : null,
          cost: { rows: rows.length },
          isFull,
        }
      },
  }
}
