import type { DatabaseSync } from 'node:sqlite'
import { reclaimSpace } from './reclaim-space.ts'
import { isBusy, isFull, isIoError } from './sqlite-errors.ts'

/** Milliseconds that a write waits for writes of other processes. */
const busyTimeout = 10_000
/** Milliseconds between two attempts. SQLite's own busy handler waits up to 100 ms, and starves while another connection keeps writing. */
const retryInterval = 2

const sleeper = new Int32Array(new SharedArrayBuffer(4))

/** Runs the action, and repeats it while SQLite reports busy; blocks the thread. */
export function waitWhileBusy<T>(action: () => T): T {
  const deadline = performance.now() + busyTimeout
  for (;;) {
    try {
      return action()
    } catch (error) {
      if (!isBusy(error) || performance.now() >= deadline) throw error
      Atomics.wait(sleeper, 0, 0, retryInterval)
    }
  }
}

/** Begins a transaction that holds the write lock from its start, so that no statement in it fails as busy. */
export function begin(db: DatabaseSync): void {
  waitWhileBusy(() => db.exec('BEGIN IMMEDIATE'))
}

/** Commits durably. If it throws, the transaction has no effect, not even after a crash. */
export function commit(db: DatabaseSync): void {
  try {
    db.exec('COMMIT')
  } catch (error) {
    rollback(db)
    if (isIoError(error)) overwriteFailedFrames(db)
    throw error
  }
}

/** Rolls back the open transaction, if SQLite has not done so itself. */
export function rollback(db: DatabaseSync): void {
  if (db.isTransaction) db.exec('ROLLBACK')
}

/**
 * A commit whose sync failed leaves complete frames in the write-ahead log, and recovery after a kill would replay them. Another commit
 * overwrites them; if its sync fails too, the frames are overwritten anyway.
 */
function overwriteFailedFrames(db: DatabaseSync): void {
  try {
    db.exec(`BEGIN IMMEDIATE;
      INSERT INTO meta (key, value) VALUES ('failed_commits', '1')
        ON CONFLICT DO UPDATE SET value = CAST(value AS INTEGER) + 1;
      COMMIT`)
  } catch {
    rollback(db)
  }
}

/** Runs the action in one durable transaction; retries once if the disk was full and space could be freed. */
export function runTransaction<T>(db: DatabaseSync, action: () => T): T {
  try {
    return runOnce(db, action)
  } catch (error) {
    if (!isFull(error) || !reclaimSpace(db)) throw error
    return runOnce(db, action)
  }
}

function runOnce<T>(db: DatabaseSync, action: () => T): T {
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
