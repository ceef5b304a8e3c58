import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { bucketDeleted } from '../../core/fault.ts'
import { expiredColumn, itemColumnCount, readItemDetails } from '../item-columns.ts'
import { createItemStatements } from '../item-statements.ts'
import type { ItemPlace, ItemRows, ItemSelection } from '../records.ts'
import { integer } from '../rows.ts'
import { all, one } from './rows.ts'

/** Reads items as Catalog.items; to be called within a transaction. */
export function prepareReadItems(
  db: DatabaseSync,
): (selection: ItemSelection, after: ItemPlace | null, limit: number) => ItemRows {
  const bucket = db.prepare(`SELECT revision, ${expiredColumn('?2')} FROM buckets WHERE id = ?1`)
  const statementOf = createItemStatements('?')
  const prepared = new Map<string, StatementSync>()

  function prepare(sql: string): StatementSync {
    const statement = prepared.get(sql) ?? db.prepare(sql)
    prepared.set(sql, statement)
    return statement
  }

  return (selection, after, limit) => {
    const now = Date.now()
    const row = one(bucket, selection.bucketId, now)
    if (!row) throw bucketDeleted()
    const { sql, values } = statementOf(selection, after, limit, now)
    const rows = all(prepare(sql), ...values)
    return {
      revision: integer(row, 0),
      expired: integer(row, 1),
      rows: rows.map((row) => ({ item: readItemDetails(row), seq: integer(row, itemColumnCount) })),
      examined: null,
    }
  }
}
