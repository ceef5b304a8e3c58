import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { ItemId } from '../../../../core/ids.ts'
import { isCorrupt, isIoError } from '../../../sqlite.ts'
import type { CatalogDamage } from '../../checks/inspection.ts'
import { text } from '../../statements.ts'
import { all, one } from './sqlite-database.ts'

/** A page is damaged, or the disk does not return it. Other pages may be readable. */
export const isUnreadable = (error: unknown): boolean => isCorrupt(error) || isIoError(error)

/** The ids of all items, from their index: it has other pages than the rows. */
export const itemIds = (schema: 'main' | 'source'): string =>
  `SELECT id FROM ${schema}.items INDEXED BY sqlite_autoindex_items_1`

/** The result of the read; if a page cannot be read, what `instead` returns. */
export function unlessUnreadable<T>(read: () => T, instead: (error: unknown) => T): T {
  try {
    return read()
  } catch (error) {
    if (!isUnreadable(error)) throw error
    return instead(error)
  }
}

/** SQLite's own check of the pages. It leaves out CHECK constraints of the schema, because values are compared by checks/row-inspection.ts. */
function checkPages(db: DatabaseSync): string[] {
  db.exec('PRAGMA ignore_check_constraints = ON')
  try {
    return unlessUnreadable(
      () => all(db.prepare('PRAGMA quick_check(20)')).map((row) => text(row, 0)),
      (error) => [String(error)],
    ).filter((row) => row !== 'ok')
  } finally {
    db.exec('PRAGMA ignore_check_constraints = OFF')
  }
}

/** Damaged pages, and if there are any, the items whose rows or bytes cannot be read. */
export function findDamage(db: DatabaseSync): CatalogDamage {
  const details = checkPages(db)
  if (details.length === 0) return { details, rows: [], bytes: [] }
  const ids = unlessUnreadable(
    () => all(db.prepare(itemIds('main'))).map((row) => text(row, 0) as ItemId),
    (error) => {
      details.push(`the index of ids cannot be read: ${String(error)}`)
      return []
    },
  )
  const unreadable = (statement: StatementSync) =>
    ids.filter((id) =>
      unlessUnreadable(
        () => {
          one(statement, id)
          return false
        },
        () => true,
      ),
    )
  const rows = new Set(unreadable(db.prepare('SELECT * FROM items WHERE id = ?')))
  const bytes = unreadable(
    db.prepare('SELECT bytes FROM contents WHERE id = (SELECT content_id FROM items WHERE id = ?)'),
  )
  return { details, rows: [...rows], bytes: bytes.filter((id) => !rows.has(id)) }
}
