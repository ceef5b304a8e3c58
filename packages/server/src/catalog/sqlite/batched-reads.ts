import type { DatabaseSync } from 'node:sqlite'
import { prepareSnapshots } from './snapshot.ts'

interface Pending<Key, Value> {
  readonly key: Key
  readonly resolve: (value: Value) => void
  readonly reject: (error: unknown) => void
}

/**
 * Runs the reads of one tick in one transaction, because SQLite's locks cost three times as much as finding a row.
 * The transaction begins after the last of them was requested and ends before any other code runs. If it cannot begin, each read is
 * one of its own.
 */
export function createBatchedReads<Key, Value>(
  db: DatabaseSync,
  /** `isFirst` is true for the first read of a tick. */
  read: (key: Key, isFirst: boolean) => Value,
) {
  const snapshots = prepareSnapshots(db)
  let pending: Pending<Key, Value>[] = []

  function flush() {
    const batch = pending
    pending = []
    if (batch.length > 1 && db.isOpen) beginIfPossible()
    for (const [index, { key, resolve, reject }] of batch.entries()) {
      try {
        resolve(read(key, index === 0))
      } catch (error) {
        reject(error)
      }
    }
    if (db.isOpen) snapshots.end()
  }

  function beginIfPossible() {
    try {
      snapshots.begin()
    } catch {
      // The reads report what is wrong. An error here would end the process.
    }
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
