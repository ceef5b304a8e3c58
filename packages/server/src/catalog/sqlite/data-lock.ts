import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isBusy } from '../../sqlite/result-codes.ts'
import { makeDirectory } from './make-directory.ts'
import { explainOpenError } from './open-errors.ts'

/** Milliseconds to wait for another process that is ending, or that fails to start at the same time. */
const busyTimeout = 1_000

export class DataLockedError extends Error {
  override readonly name = 'DataLockedError'

  constructor(directory: string) {
    super(
      `The data directory ${directory} is already served by another mediabucket process. ` +
        'Stop that process first, or set another data directory for this one.',
    )
  }
}

/** Protects held connections from the garbage collector, which would close them. */
const held = new Set<DatabaseSync>()

export interface DataLock {
  release(): void
}

function open(path: string): DatabaseSync {
  try {
    return new DatabaseSync(path, { timeout: busyTimeout })
  } catch (error) {
    throw explainOpenError(path, error)
  }
}

/**
 * Locks the directory for this process until the release or the end of the process. Throws DataLockedError.
 * The lock is SQLite's fcntl lock on `lock.db`: no other code in this process may open that file, because closing any
 * descriptor of it releases the lock.
 */
export function acquireDataLock(directory: string): DataLock {
  makeDirectory(directory)
  const path = join(directory, 'lock.db')
  const db = open(path)
  try {
    db.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    db.close()
    throw isBusy(error) ? new DataLockedError(directory) : explainOpenError(path, error)
  }
  held.add(db)
  return {
    release() {
      if (held.delete(db)) db.close()
    },
  }
}
