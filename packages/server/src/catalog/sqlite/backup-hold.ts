import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { makeDirectory } from './make-directory.ts'
import { isBusy, isCorrupt } from './sqlite-errors.ts'

/** Milliseconds to wait for a server that is just looking whether anybody holds. */
const patience = 1_000

/** Another backup of the same data is running. */
export class BackupHoldError extends Error {
  override readonly name = 'BackupHoldError'

  constructor() {
    super('Another backup of these data is running; wait for its end, or stop it.')
  }
}

/** Keeps holds from the garbage collector, which closes a connection that nothing refers to. */
const holds = new Set<DatabaseSync>()

const open = (directory: string, timeout: number): DatabaseSync => {
  makeDirectory(directory)
  return new DatabaseSync(join(directory, 'hold.db'), { timeout })
}

/**
 * From here until the release, or the end of this process in any way, no bytes of deleted items are removed. A lock
 * of the operating system, as in data-lock.ts: a backup that was killed holds nothing.
 */
export function acquireBackupHold(directory: string): { release(): void } {
  const db = open(directory, patience)
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
 * Whether a backup holds removals. Bytes whose row was gone before a check that returns false may be removed after it:
 * a backup that begins later has a snapshot without them. `isHeld` throws where the lock cannot be read.
 */
export function watchBackupHold(directory: string): { isHeld(): boolean; close(): void } {
  const db = openInitialized(directory)
  return {
    isHeld() {
      try {
        db.exec('BEGIN EXCLUSIVE')
      } catch (error) {
        if (isBusy(error)) return true
        throw error
      }
      db.exec('ROLLBACK')
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
  // No backup can hold a file that is not a database, and nothing is stored in it.
  db.close()
  for (const suffix of ['', '-journal']) rmSync(join(directory, `hold.db${suffix}`), { force: true })
  return openInitialized(directory)
}
