import type { DatabaseSync } from 'node:sqlite'

interface Pending<Key, Value> {
  readonly key: Key
  readonly resolve: (value: Value) => void
  readonly reject: (error: unknown) => void
}

/**
 * Runs the reads of one tick in one transaction, because SQLite's locks cost three times as much as finding a row.
 * The transaction begins after the last of them was requested and ends before any other code runs.
 */
export function createBatchedReads<Key, Value>(
  db: DatabaseSync,
  /** `isFirst` is true for the first read of a tick. */
  read: (key: Key, isFirst: boolean) => Value,
) {
  const begin = db.prepare('BEGIN')
  const end = db.prepare('COMMIT')
  let pending: Pending<Key, Value>[] = []

  function flush() {
    const batch = pending
    pending = []
    const needsTransaction = batch.length > 1 && db.isOpen
    if (needsTransaction) begin.run()
    for (const [index, { key, resolve, reject }] of batch.entries()) {
      try {
        resolve(read(key, index === 0))
      } catch (error) {
        reject(error)
      }
    }
    // SQLite itself ends the transaction on some errors, such as a damaged catalog.
    if (needsTransaction && db.isTransaction) end.run()
  }

  return {
    read: (key: Key): Promise<Value> =>
      new Promise((resolve, reject) => {
        if (pending.push({ key, resolve, reject }) === 1) queueMicrotask(flush)
      }),
    /** Runs the pending reads now; to be called before the connection is closed. */
    flush,
  }
}
