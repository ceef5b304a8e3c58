import { bucketDeleted } from '../../core/fault.ts'
import { expiredColumn, itemColumnCount, readItemDetails } from '../item-columns.ts'
import { createItemStatements } from '../item-statements.ts'
import type { ItemPlace, ItemRows, ItemSelection } from '../records.ts'
import { integer } from '../rows.ts'
import type { Run } from './statements.ts'

const statementOf = createItemStatements('$')

/** Reads items as Catalog.items. */
export async function readItems(
  run: Run,
  selection: ItemSelection,
  after: ItemPlace | null,
  limit: number,
): Promise<ItemRows> {
  const { sql, order, values } = statementOf(selection, after, limit, Date.now())
  // One statement, and so one snapshot. If no item is selected, the row of the bucket has none.
  const rows = await run(
    `WITH bucket AS MATERIALIZED (SELECT revision, ${expiredColumn('$2')} AS expired FROM buckets WHERE id = $1)
    SELECT item.*, bucket.revision, bucket.expired FROM bucket LEFT JOIN (${sql}) AS item ON true ORDER BY ${order}`,
    ...values,
  )
  const [first] = rows
  if (first === undefined) throw bucketDeleted()
  return {
    revision: integer(first, itemColumnCount + 1),
    expired: integer(first, itemColumnCount + 2),
    rows: rows.flatMap((row) =>
      row[itemColumnCount] === null
        ? []
        : [{ item: readItemDetails(row), seq: integer(row, itemColumnCount) }],
    ),
    examined: null,
  }
}
