import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ExplainedError } from '../../core/explained-error.ts'
import { isBusy } from '../../sqlite/result-codes.ts'
import { makeDirectory } from './make-directory.ts'
import { explainOpenError, refuseLink } from './open-errors.ts'

/** Milliseconds to wait for another process that is ending, or that fails to start at the same time. */
const busyTimeout = 1_000

/** Milliseconds to wait for the workers of a server that was killed. They end when they notice it. */
const workersTimeout = 5_000

export class DataLockedError extends ExplainedError {
  override readonly name = 'DataLockedError'

  constructor(directory: string) {
    super(
      `The data directory ${directory} is already served by another mediabucket process. ` +
        'Stop that process first, or set MEDIABUCKET_DATA to another directory for other data. ' +
        'Several servers can share data in PostgreSQL and an S3 store (docs/deploy).',
    )
  }
}

/** Protects held connections from the garbage collector, which would close them. */
const held = new Set<DatabaseSync>()

export interface DataLock {
  release(): void
}

function open(path: string, timeout = busyTimeout): DatabaseSync {
  refuseLink(path)
  try {
    return new DatabaseSync(path, { timeout })
  } catch (error) {
    throw explainOpenError(path, error)
  }
}

/** The lock that the workers of a server share. The operating system releases the lock of a worker when the worker ends. */
const workersPath = (directory: string): string => join(directory, 'workers.db')

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
  const release = () => {
    if (held.delete(db)) db.close()
  }
  try {
    waitForWorkers(directory)
  } catch (error) {
    release()
    throw error
  }
  return { release }
}

/** Waits until the workers of an earlier server have ended: they may still write. Throws DataLockedError. */
function waitForWorkers(directory: string): void {
  const path = workersPath(directory)
  if (!existsSync(path)) return
  const db = open(path, workersTimeout)
  try {
    db.exec('BEGIN EXCLUSIVE; ROLLBACK')
  } catch (error) {
    throw isBusy(error) ? new DataLockedError(directory) : explainOpenError(path, error)
  } finally {
    db.close()
  }
}

/** Takes the lock of a worker, until the release or the end of the process. The server holds the lock of acquireDataLock. */
export function acquireWorkerLock(directory: string): DataLock {
  const path = workersPath(directory)
  const db = open(path)
  try {
    // The read takes a shared lock, which the transaction holds.
    db.exec('BEGIN; SELECT count(*) FROM sqlite_schema')
  } catch (error) {
    db.close()
    throw explainOpenError(path, error)
  }
  held.add(db)
  return {
    release() {
      if (held.delete(db)) db.close()
    },
  }
}
