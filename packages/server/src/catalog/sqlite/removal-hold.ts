import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { makeDirectory } from './make-directory.ts'
import { isBusy } from './sqlite-errors.ts'

/** Milliseconds to wait for a server that is just looking whether anybody holds. */
const patience = 1_000

/** Another backup of the same data is running. */
export class RemovalHeldError extends Error {
  override readonly name = 'RemovalHeldError'

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
export function holdRemovals(directory: string): { release(): void } {
  const db = open(directory, patience)
  try {
    db.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    db.close()
    throw isBusy(error) ? new RemovalHeldError() : error
  }
  holds.add(db)
  return {
    release() {
      if (holds.delete(db)) db.close()
    },
  }
}

/**
 * Tells whether a backup holds removals. Bytes whose row was gone before a look that says no may be removed after it:
 * a backup that begins later has a snapshot without them.
 */
export function watchRemovalHold(directory: string): { isHeld(): boolean; close(): void } {
  const db = open(directory, 0)
  try {
    // A database with nothing in it would write a journal at every look.
    db.exec('PRAGMA user_version = 1')
  } catch {
    // Held just now: then an earlier look has written it, or a later one bears the cost.
  }
  return {
    isHeld() {
      try {
        db.exec('BEGIN EXCLUSIVE')
        db.exec('ROLLBACK')
        return false
      } catch {
        // Busy, or in doubt: bytes that are kept can still be removed later.
        return true
      }
    },
    close() {
      if (db.isOpen) db.close()
    },
  }
}
