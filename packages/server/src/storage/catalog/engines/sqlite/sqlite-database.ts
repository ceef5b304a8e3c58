import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  openSync,
  realpathSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { Fault } from '../../../../core/faults.ts'
import { hasLittleMemory } from '../../../memory.ts'
import {
  applyCreationSettings,
  isBusy,
  isFull,
  isIoError,
  isShortage,
  waitWhileBusy,
} from '../../../sqlite.ts'
import {
  type EngineStep,
  type EngineSteps,
  type Row,
  type SqlValue,
  type Statement,
  type StatementResult,
  sqliteText,
  type Work,
} from '../../statements.ts'

/** Milliseconds that a read waits for a lock. In WAL mode reads wait only while the log is recovered after a crash. */
export const readTimeout = 5_000
/** KiB of pages that one connection caches. */
const cacheSize = (hasLittleMemory ? 4 : 64) * 1024
/** Bytes to which a checkpoint truncates the write-ahead log. */
const journalSizeLimit = 64 * 1024 * 1024

/**
 * Opens `catalog.db` in an existing directory; statements return rows as arrays, which `one` and `all` return.
 * `busyTimeout` is SQLite's own, in milliseconds: `readTimeout` to read; writers leave it at 0 and wait when they begin a transaction (`begin`).
 */
export function openConnection(directory: string, busyTimeout = 0): DatabaseSync {
  const db = new DatabaseSync(join(directory, 'catalog.db'), { returnArrays: true, timeout: busyTimeout })
  try {
    applyCreationSettings(db)
    // The switch to WAL ignores the busy timeout and fails while another process is switching.
    waitWhileBusy(() => db.exec('PRAGMA journal_mode = WAL'))
    db.exec(`
      PRAGMA synchronous = FULL;
      PRAGMA foreign_keys = ON;
      PRAGMA temp_store = MEMORY;
      PRAGMA cache_size = -${cacheSize};
      PRAGMA journal_size_limit = ${journalSizeLimit};
    `)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** The first row, or null. Connections return arrays (`openConnection`), which the types of node:sqlite do not express. */
export function one(statement: StatementSync, ...parameters: SQLInputValue[]): Row | null {
  const row: unknown = statement.get(...parameters)
  return Array.isArray(row) ? row : null
}

export function all(statement: StatementSync, ...parameters: SQLInputValue[]): Row[] {
  return statement.all(...parameters).map((row: unknown) => {
    if (!Array.isArray(row)) throw new TypeError('the catalog returned a row that is not an array')
    return row
  })
}

const noResult: StatementResult = { rows: [], changedRows: 0 }

/** Runs coroutines on one connection, which keeps their statements prepared. Only those of changes need `engine`. */
export function createRun(db: DatabaseSync, engine?: EngineSteps): <T>(work: Work<T>) => T {
  const prepared = new Map<string, StatementSync>()

  function prepare(text: string): StatementSync {
    let statement = prepared.get(text)
    if (statement === undefined) {
      statement = db.prepare(sqliteText(text))
      prepared.set(text, statement)
    }
    return statement
  }

  function perform(step: Statement | EngineStep): StatementResult {
    if (typeof step === 'function') {
      if (engine === undefined) throw new TypeError('a step of a write has no engine')
      void step(engine)
      return noResult
    }
    const { sql, isWrite } = step
    const text = typeof sql === 'string' ? sql : sql.sqlite
    if (text === null) return noResult
    const values = step.values.map(inputOf)
    if (isWrite) return { rows: [], changedRows: Number(prepare(text).run(...values).changes) }
    return { rows: all(prepare(text), ...values), changedRows: 0 }
  }

  return (work) => {
    let step = work.next()
    while (!step.done) step = work.next(perform(step.value))
    return step.value
  }
}

const isList = (value: SqlValue): value is readonly number[] | readonly string[] => Array.isArray(value)

const inputOf = (value: SqlValue): SQLInputValue => (isList(value) ? JSON.stringify(value) : value)

/** The read transactions of one connection: all reads of one see the same snapshot. */
export interface Snapshots {
  begin(): void
  /** Ends the transaction in progress, if there is one. Never throws. */
  end(): void
  /** Runs the reads in the transaction in progress, or in one of their own. */
  run<T>(read: () => T): T
}

export function prepareSnapshots(db: DatabaseSync): Snapshots {
  const start = db.prepare('BEGIN')
  const commit = db.prepare('COMMIT')

  function end(): void {
    // SQLite itself ends the transaction on some errors.
    if (!db.isTransaction) return
    try {
      commit.run()
    } catch {
      // After a read of a damaged page, COMMIT ends the transaction and reports the damage again.
      rollback()
    }
  }

  function rollback(): void {
    try {
      if (db.isTransaction) db.exec('ROLLBACK')
    } catch {
      // The next `begin` repeats it.
    }
  }

  function begin(): void {
    end()
    start.run()
  }

  return {
    begin,
    end,
    run(read) {
      if (db.isTransaction) return read()
      begin()
      try {
        return read()
      } finally {
        end()
      }
    },
  }
}

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

/** Maps an error of SQLite to a Fault; returns any other error unchanged. */
export function asFault(error: unknown): unknown {
  if (isFull(error)) {
    return new Fault('storage-full', 'The catalog has no space left on its disk.', { cause: error })
  }
  if (isShortage(error))
    return new Fault('overloaded', 'The catalog has no memory or file descriptor left.', { cause: error })
  // Others hold the lock, so nothing has failed and the fault has no cause.
  if (isBusy(error)) return new Fault('catalog-busy', 'The catalog is busy with other work; try again.')
  return error
}

/** Runs the work; throws what asFault makes of its error. */
export function withFaults<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw asFault(error)
  }
}

// A ballast file of a few megabytes beside the catalog. It is removed when other programs have filled the disk, which leaves
// space for the write-ahead log of deletes and for a start.

/** Bytes; the size of a write-ahead log of 500 pages. */
const maxSize = 4 * 1024 * 1024

/** The most bytes that a start needs: the shared memory of the log, and pages that a checkpoint adds. */
const neededToOpen = 1024 * 1024

/** The directory in which SQLite stores the catalog and its log: that of the target if `catalog.db` is a link. */
const catalogDirectory = (directory: string): string => dirname(truePath(directory))

function truePath(directory: string): string {
  const path = join(directory, 'catalog.db')
  try {
    return realpathSync.native(path)
  } catch {
    return path
  }
}

const ballastPath = (directory: string): string => ballastBeside(truePath(directory))
const ballastBeside = (path: string): string => join(dirname(path), `${basename(path)}-ballast`)

/** Bytes; 0 if there is no ballast. */
const ballastSize = (directory: string): number => sizeOf(ballastPath(directory))
const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

/** Where the catalog uses space, and the bytes there that its ballast holds. */
export function catalogLocation(directory: string) {
  // A service reads it each second, and does not follow a link that is changed while the catalog is open.
  let known: string | null = null
  function path(): string {
    if (known !== null) return known
    const found = truePath(directory)
    if (existsSync(found)) known = found
    return found
  }
  return { directory: () => dirname(path()), held: () => sizeOf(ballastBeside(path())) }
}

/** Removes the ballast; false if there is none. */
function releaseBallast(directory: string): boolean {
  if (ballastSize(directory) === 0) return false
  rmSync(ballastPath(directory), { force: true })
  return true
}

/** Free bytes on the disk of a directory. */
function freeBytes(directory: string): number {
  const { bsize, bavail } = statfsSync(directory)
  return bavail * bsize
}

/** True if the catalog's disk has less free space than a start needs. */
function isDiskFull(directory: string): boolean {
  return freeBytes(catalogDirectory(directory)) < neededToOpen
}

/** Removes the ballast if the disk has too little space to open the catalog. */
export function reclaimSpaceToOpen(directory: string): void {
  if (isDiskFull(directory)) releaseBallast(directory)
}

/** Bytes that are written at once, in half a millisecond. */
const ballastChunk = 256 * 1024

/**
 * Creates the ballast if there is none, of at most half of `reserve`. Random bytes, because some file systems compress. Without libuv's
 * pool, whose threads would be started for it.
 */
export async function createBallast(directory: string, reserve: number): Promise<void> {
  const size = Math.min(maxSize, Math.floor(reserve / 2))
  if (size === 0 || ballastSize(directory) > 0) return
  const path = ballastPath(directory)
  try {
    const file = openSync(path, 'wx', 0o600)
    try {
      for (let rest = size; rest > 0; ) {
        rest -= writeSync(file, randomBytes(Math.min(rest, ballastChunk)))
        await setImmediate()
      }
    } finally {
      closeSync(file)
    }
  } catch (error) {
    rmSync(path, { force: true })
    throw error
  }
}

/** Below this free space, in bytes, the write-ahead log is truncated after each commit that leaves it longer than `maxLogSize`. */
const lowSpace = 8 * 1024 * 1024
const maxLogSize = 256 * 1024

const logSize = (path: string): number => sizeOf(`${path}-wal`)

/** Frees space on a full disk: removes the ballast and truncates the log. False if the disk is not full, or nothing was freed. */
export function reclaimSpace(db: DatabaseSync): boolean {
  const path = db.location()
  if (path === null || db.isTransaction || !isDiskFull(dirname(path))) return false
  const released = releaseBallast(dirname(path))
  const before = logSize(path)
  truncateLog(db)
  return released || logSize(path) < before
}

/** Truncates the log after a commit if the disk has little space; SQLite never shrinks it by itself. */
export function limitLogSize(db: DatabaseSync): void {
  const path = db.location()
  if (path === null) return
  try {
    // SQLite has resolved the links of its location.
    if (freeBytes(dirname(path)) < lowSpace && logSize(path) > maxLogSize) truncateLog(db)
  } catch {
    // An unreadable amount of free space must not end the writer.
  }
}

function truncateLog(db: DatabaseSync): void {
  try {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // The log stays complete; a later checkpoint copies it.
  }
}
