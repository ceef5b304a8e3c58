import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ExplainedError } from '../../../../core/faults.ts'
import { isBusy, isCorrupt } from '../../../sqlite.ts'
import { explainOpenError, makeDirectory, refuseLink } from './data-directory.ts'

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

function openLock(path: string, timeout = busyTimeout): DatabaseSync {
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
  const db = openLock(path)
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
  const db = openLock(path, workersTimeout)
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
  const db = openLock(path)
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

// A backup holds an exclusive lock on `hold.db`. While it is held, the bytes of deleted items stay on the disk.

/** Milliseconds that a backup waits for a server that is checking the lock. */
const holdTimeout = 1_000

/** Another backup of the same data is running. */
export class BackupHoldError extends ExplainedError {
  override readonly name = 'BackupHoldError'

  constructor() {
    super('Another backup of these data is running. Wait until it ends, or stop it, then try again.')
  }
}

/** Protects held connections from the garbage collector, which would close them. */
const holds = new Set<DatabaseSync>()

const openHold = (directory: string, timeout: number): DatabaseSync => {
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
  const db = openHold(directory, holdTimeout)
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
  const db = openHold(directory, 0)
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
