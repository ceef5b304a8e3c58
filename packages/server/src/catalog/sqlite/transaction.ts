import type { DatabaseSync } from 'node:sqlite'
import { isFull, isIoError } from '../../sqlite/result-codes.ts'
import { waitWhileBusy } from '../../sqlite/wait-while-busy.ts'
import { reclaimSpace } from './reclaim-space.ts'

/** Begins a transaction that holds the write lock from its start, so that no statement in it fails as busy. */
export function begin(db: DatabaseSync): void {
  rollback(db)
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

/** Rolls back the open transaction, if SQLite has not done so itself. Never throws: `begin` repeats a rollback that failed. */
export function rollback(db: DatabaseSync): void {
  try {
    if (db.isTransaction) db.exec('ROLLBACK')
  } catch {
    // The error that led to the rollback is the one to report.
  }
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
