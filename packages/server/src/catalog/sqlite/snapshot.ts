import type { DatabaseSync } from 'node:sqlite'

/** The read transactions of one connection: all reads of one see the same snapshot. */
export interface Snapshots {
  begin(): void
  /** Ends the transaction in progress, if there is one. Never throws. */
  end(): void
  /** Runs the reads in the transaction in progress, or in one of their own. */
  run<T>(read: () => T): T
}

export function prepareSnapshots(db: DatabaseSync): Snapshots {
  const start = db.prepare('BEGIN')
  const commit = db.prepare('COMMIT')

  function end(): void {
    // SQLite itself ends the transaction on some errors.
    if (!db.isTransaction) return
    try {
      commit.run()
    } catch {
      // After a read of a damaged page, COMMIT ends the transaction and reports the damage again.
      rollback()
    }
  }

  function rollback(): void {
    try {
      if (db.isTransaction) db.exec('ROLLBACK')
    } catch {
      // The next `begin` repeats it.
    }
  }

  function begin(): void {
    end()
    start.run()
  }

  return {
    begin,
    end,
    run(read) {
      if (db.isTransaction) return read()
      begin()
      try {
        return read()
      } finally {
        end()
      }
    },
  }
}
