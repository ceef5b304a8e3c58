import type { DatabaseSync } from 'node:sqlite'
import { makeRoom } from './log-space.ts'
import { isBusy, isFull, isIoError } from './sqlite-errors.ts'

/** Milliseconds for which a write waits for other processes' writes. */
const patience = 10_000
/** Milliseconds between two tries. SQLite's own waiting grows to 100 and so starves beside a busy writer. */
const pause = 2

const sleeper = new Int32Array(new SharedArrayBuffer(4))

/** Runs the action, again and again while SQLite says busy; blocks its thread. */
export function waitWhileBusy<T>(action: () => T): T {
  const deadline = performance.now() + patience
  for (;;) {
    try {
      return action()
    } catch (error) {
      if (!isBusy(error) || performance.now() >= deadline) throw error
      Atomics.wait(sleeper, 0, 0, pause)
    }
  }
}

/** Begins a transaction that holds the write lock from the start, so that nothing in it can turn out busy. */
export function begin(db: DatabaseSync): void {
  waitWhileBusy(() => db.exec('BEGIN IMMEDIATE'))
}

/** Commits durably; when it throws, nothing of the transaction is there, not even after a crash. */
export function commit(db: DatabaseSync): void {
  try {
    db.exec('COMMIT')
  } catch (error) {
    rollback(db)
    if (isIoError(error)) bury(db)
    throw error
  }
}

/** Ends the open transaction, if SQLite has not done so by itself. */
export function rollback(db: DatabaseSync): void {
  if (db.isTransaction) db.exec('ROLLBACK')
}

/**
 * A commit whose sync failed leaves whole frames in the write-ahead log, and recovery after a kill would believe
 * them. Another commit overwrites them; when that fails too, the log has at least been written over.
 */
function bury(db: DatabaseSync): void {
  try {
    db.exec(`BEGIN IMMEDIATE;
      INSERT INTO meta (key, value) VALUES ('failed_commits', '1')
        ON CONFLICT DO UPDATE SET value = CAST(value AS INTEGER) + 1;
      COMMIT`)
  } catch {
    rollback(db)
  }
}

/** Runs the action in one durable transaction of its own, once more where the disk was full and room could be made. */
export function immediate<T>(db: DatabaseSync, action: () => T): T {
  try {
    return once(db, action)
  } catch (error) {
    if (!isFull(error) || !makeRoom(db)) throw error
    return once(db, action)
  }
}

function once<T>(db: DatabaseSync, action: () => T): T {
  begin(db)
  let result: T
  try {
    result = action()
  } catch (error) {
    rollback(db)
    throw error
  }
  commit(db)
  return result
}
