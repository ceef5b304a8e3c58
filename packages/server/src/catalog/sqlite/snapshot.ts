import type { DatabaseSync } from 'node:sqlite'

/** Returns a function that runs reads in the transaction in progress, or in one of their own. */
export function prepareSnapshot(db: DatabaseSync): <T>(read: () => T) => T {
  const begin = db.prepare('BEGIN')
  const end = db.prepare('COMMIT')
  return (read) => {
    if (db.isTransaction) return read()
    begin.run()
    try {
      return read()
    } finally {
      // SQLite itself ends the transaction on some errors.
      if (db.isTransaction) end.run()
    }
  }
}
