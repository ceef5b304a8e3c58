import type { DatabaseSync } from 'node:sqlite'
import type { ItemId } from '../../core/media-id.ts'
import { isPrivateColumn } from '../item-columns.ts'
import type { Servability } from '../records.ts'
import { integer, integerOrNull } from '../rows.ts'
import { one } from './rows.ts'
import { prepareSnapshots } from './snapshot.ts'
import { createUnchangedRows } from './unchanged-rows.ts'

const states = ['not', 'renamed', 'servable', 'private'] as const

interface State {
  readonly servability: Servability
  /** Milliseconds since the epoch; null if the item does not expire. */
  readonly expiresAt: number | null
}

/** Returns a function that reads whether items can be served now. What it reads is used again until the database changes. */
export function prepareServability(db: DatabaseSync): (ids: readonly ItemId[]) => Servability[] {
  // Reads no row of `items`, only its indexes: reading the row costs three times as much.
  const state = db.prepare(`SELECT CASE WHEN EXISTS (SELECT 1 FROM damaged WHERE damaged.id = items.id) THEN 0
    WHEN ${isPrivateColumn} = 1 THEN 3
    WHEN EXISTS (SELECT 1 FROM items INDEXED BY items_renamed WHERE id = ?1 AND renamed IS NOT NULL) THEN 1 ELSE 2 END,
    (SELECT item_expires_at FROM items INDEXED BY items_expiring WHERE id = ?1 AND item_expires_at IS NOT NULL)
    FROM items WHERE id = ?1 AND bucket_id > 0`)
  const inSnapshot = prepareSnapshots(db).run
  const rows = createUnchangedRows<ItemId, State>(db, {
    keyOf: (id) => id,
    read(id) {
      const row = one(state, id)
      return row && { servability: states[integer(row, 0)] ?? 'not', expiresAt: integerOrNull(row, 1) }
    },
  })

  function servability(id: ItemId, now: number): Servability {
    const row = rows.read(id)
    if (row === null || (row.expiresAt !== null && row.expiresAt <= now)) return 'not'
    return row.servability
  }

  return (ids) => {
    rows.refresh()
    const now = Date.now()
    const read = () => ids.map((id) => servability(id, now))
    // SQLite's locks cost three times as much as finding a row.
    if (ids.every(rows.has)) return read()
    return inSnapshot(() => {
      // The rows in memory and those that are read must be of the same version.
      rows.refresh()
      return read()
    })
  }
}
