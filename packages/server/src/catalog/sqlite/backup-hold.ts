import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ExplainedError } from '../../core/explained-error.ts'
import { isBusy, isCorrupt } from '../../sqlite/result-codes.ts'
import { makeDirectory } from './make-directory.ts'
import { refuseLink } from './open-errors.ts'

// A backup holds an exclusive lock on `hold.db`. While it is held, the bytes of deleted items stay on the disk.

/** Milliseconds that a backup waits for a server that is checking the lock. */
const busyTimeout = 1_000

/** Another backup of the same data is running. */
export class BackupHoldError extends ExplainedError {
  override readonly name = 'BackupHoldError'

  constructor() {
    super('Another backup of these data is running. Wait until it ends, or stop it, then try again.')
  }
}

/** Protects held connections from the garbage collector, which would close them. */
const holds = new Set<DatabaseSync>()

const open = (directory: string, timeout: number): DatabaseSync => {
  makeDirectory(directory)
  const path = join(directory, 'hold.db')
  refuseLink(path)
  return new DatabaseSync(path, { timeout })
}

/**
 * Keeps the bytes of deleted items until the release or the end of this process. The operating system releases the lock
 * when a backup is killed. Throws BackupHoldError.
 */
export function acquireBackupHold(directory: string): { release(): void } {
  const db = open(directory, busyTimeout)
  try {
    db.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    db.close()
    throw isBusy(error) ? new BackupHoldError() : error
  }
  holds.add(db)
  return {
    release() {
      if (holds.delete(db)) db.close()
    },
  }
}

/**
 * `isHeld` returns whether a backup is running; throws if the lock cannot be read. If it returns false after the row of an item was removed,
 * the bytes may be removed: a backup that starts later has a snapshot without the row.
 */
export function watchBackupHold(directory: string): { isHeld(): boolean; close(): void } {
  const db = openInitialized(directory)
  return {
    isHeld() {
      try {
        // Takes a shared lock for a moment, so that several workers can check at the same time.
        db.exec('SELECT count(*) FROM sqlite_schema')
      } catch (error) {
        if (isBusy(error)) return true
        throw error
      }
      return false
    },
    close() {
      if (db.isOpen) db.close()
    },
  }
}

/** An empty database would write a journal at every check. */
function openInitialized(directory: string): DatabaseSync {
  const db = open(directory, 0)
  try {
    db.exec('PRAGMA user_version = 1')
    return db
  } catch (error) {
    if (!isCorrupt(error)) return db
  }
  // A file that is not a database holds no data, and no backup can hold a lock on it.
  db.close()
  for (const suffix of ['', '-journal']) rmSync(join(directory, `hold.db${suffix}`), { force: true })
  return openInitialized(directory)
}
