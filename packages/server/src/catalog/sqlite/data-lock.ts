import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { makeDirectory } from './make-directory.ts'
import { isBusy } from './sqlite-errors.ts'
import { explainOpening } from './usable-data.ts'

/** Milliseconds to wait for a holder: one that is just ending, or another that starts at the same moment. */
const patience = 1_000

export class DataLockedError extends Error {
  override readonly name = 'DataLockedError'

  constructor(directory: string) {
    super(
      `The data directory ${directory} is already served by another mediabucket process. ` +
        'Stop that process first, or set another data directory for this one.',
    )
  }
}

/** Keeps held locks from the garbage collector, which closes a connection that nothing refers to. */
const held = new Set<DatabaseSync>()

export interface DataLock {
  release(): void
}

function opened(path: string): DatabaseSync {
  try {
    return new DatabaseSync(path, { timeout: patience })
  } catch (error) {
    throw explainOpening(path, error)
  }
}

/**
 * Makes this process the only one that serves the directory, until it releases the lock or ends in any way.
 * The lock is SQLite's on `lock.db`, of the kind fcntl: nothing else in this process may open that file, since
 * closing any descriptor of it would drop the lock.
 */
export function acquireDataLock(directory: string): DataLock {
  makeDirectory(directory)
  const path = join(directory, 'lock.db')
  const db = opened(path)
  try {
    db.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    db.close()
    throw isBusy(error) ? new DataLockedError(directory) : explainOpening(path, error)
  }
  held.add(db)
  return {
    release() {
      if (held.delete(db)) db.close()
    },
  }
}
