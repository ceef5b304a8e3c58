import type { DatabaseSync } from 'node:sqlite'

/**
 * `read`, for many who ask in one go. A read by itself takes and gives back SQLite's locks, which costs three times
 * as much as finding a row; so reads that were asked for together are done in one transaction, one after the other.
 * It begins when the last of them has been asked for, and is over before anything else runs.
 */
export function gatheredReads<Key, Value>(db: DatabaseSync, read: (key: Key) => Value) {
  const begin = db.prepare('BEGIN')
  const end = db.prepare('COMMIT')
  let asked: { key: Key; resolve: (value: Value) => void; reject: (error: unknown) => void }[] = []

  function readAll() {
    const batch = asked
    asked = []
    const together = batch.length > 1 && db.isOpen
    if (together) begin.run()
    for (const { key, resolve, reject } of batch) {
      try {
        resolve(read(key))
      } catch (error) {
        reject(error)
      }
    }
    // A damaged catalog may have ended it already.
    if (together && db.isTransaction) end.run()
  }

  return {
    read: (key: Key): Promise<Value> =>
      new Promise((resolve, reject) => {
        if (asked.push({ key, resolve, reject }) === 1) queueMicrotask(readAll)
      }),
    /** Reads at once what was asked for so far: for whoever closes the connection. */
    readAll,
  }
}
