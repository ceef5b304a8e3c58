import type { DatabaseSync } from 'node:sqlite'
import { integer } from '../rows.ts'
import { one } from './rows.ts'

/** Rows in memory. Above this number, all are read again. */
const maxRows = 10_000

/** Rows of one kind, each read once until the database changes. */
export interface UnchangedRows<Key, Value> {
  /** Discards the rows if the database has changed. Call it in each tick before the first read. */
  refresh(): void
  /** Whether the row is in memory. */
  has(key: Key): boolean
  /** Null if there is no such row. */
  read(key: Key): Value | null
}

/**
 * SQLite increments `data_version` of a connection when another one, also of another process, has committed. So a row is never
 * older than the last `refresh`. The connection itself must not write.
 */
export function createUnchangedRows<Key, Value>(
  db: DatabaseSync,
  { keyOf, read }: { readonly keyOf: (key: Key) => string; readonly read: (key: Key) => Value | null },
): UnchangedRows<Key, Value> {
  const dataVersion = db.prepare('PRAGMA data_version')
  // Replaced, not cleared: V8 keeps the rows of a cleared Map in memory (core/slab.ts).
  let rows = new Map<string, Value>()
  let version: number | null = null

  return {
    refresh() {
      const before = version
      // If the read fails, no row of an earlier version is used.
      version = null
      version = integer(one(dataVersion) ?? [], 0)
      if (version !== before || rows.size >= maxRows) rows = new Map()
    },
    has: (key) => version !== null && rows.has(keyOf(key)),
    read(key) {
      if (version === null) return read(key)
      const name = keyOf(key)
      const known = rows.get(name)
      if (known !== undefined) return known
      const row = read(key)
      if (row !== null) rows.set(name, row)
      return row
    },
  }
}
