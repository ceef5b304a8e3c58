import type { DatabaseSync } from 'node:sqlite'

// Result codes of SQLite, https://sqlite.org/rescode.html; the low byte is the primary code.
const busy = 5
const outOfMemory = 7
const ioError = 10
const corrupt = 11
const full = 13
const cannotOpen = 14
const notADatabase = 26
const ioErrorShmSize = 4874

/** SQLite's extended result code; null for other errors. */
export function resultCode(error: unknown): number | null {
  if (!(error instanceof Error) || !('errcode' in error)) return null
  return typeof error.errcode === 'number' ? error.errcode : null
}

function primaryCode(error: unknown): number | null {
  const code = resultCode(error)
  return code === null ? null : code & 0xff
}

export const isBusy = (error: unknown): boolean => primaryCode(error) === busy

/** The disk is full. */
export const isFull = (error: unknown): boolean =>
  resultCode(error) === ioErrorShmSize || primaryCode(error) === full

export const isIoError = (error: unknown): boolean => primaryCode(error) === ioError

export const isCorrupt = (error: unknown): boolean =>
  [corrupt, notADatabase].includes(primaryCode(error) ?? 0)

/** The process has no memory or file descriptor left. */
export const isShortage = (error: unknown): boolean =>
  [outOfMemory, cannotOpen].includes(primaryCode(error) ?? 0)

/** True for errors of the file or the machine: the whole transaction must be rolled back. */
export function endsTransaction(error: unknown): boolean {
  const code = primaryCode(error)
  return code !== null && [outOfMemory, ioError, corrupt, full, notADatabase].includes(code)
}

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

/**
 * A row with the bytes of a small file needs fewer pages of 8 kB than of 4 kB. Free pages can be returned to the file system.
 * The settings have an effect on an empty database, and at the VACUUM of another one.
 */
export const creationSettings = 'PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL'

/** Only for an empty database, because the second setting writes to any other one. */
export function applyCreationSettings(db: DatabaseSync): void {
  const row: unknown = db.prepare('PRAGMA page_count').get()
  if (Array.isArray(row) && row[0] === 0) waitWhileBusy(() => db.exec(creationSettings))
}

/** A database keeps this share of free pages for later rows, and this many bytes, before they are released in the background. */
const keptShare = 0.25
const keptBytes = 64 * 1024 * 1024

/** Bytes that one step releases. It takes a few milliseconds, during which other writes wait. */
const stepSize = 1024 * 1024

/** Milliseconds between two steps, and between two checks whether there is much free space. Each check wakes the thread of an idle service. */
const stepInterval = 100
const checkInterval = 10_000

/** The pages of a database. SQLite reuses free pages. */
export interface DatabaseSpace {
  /** Bytes. */
  readonly size: number
  /** Bytes of free pages. */
  readonly free: number
}

export function databaseSpace(db: DatabaseSync): DatabaseSpace {
  const pageSize = pragma(db, 'page_size')
  return {
    size: pragma(db, 'page_count') * pageSize,
    free: pragma(db, 'freelist_count') * pageSize,
  }
}

/** To be called in a transaction. The file shrinks at the next checkpoint. */
export function releasePages(db: DatabaseSync): void {
  db.exec(`PRAGMA incremental_vacuum(${stepSize / pragma(db, 'page_size')})`)
}

export function hasMuchFreeSpace(db: DatabaseSync): boolean {
  const pageSize = pragma(db, 'page_size')
  const free = pragma(db, 'freelist_count') * pageSize
  return free > keptBytes && free > keptShare * pragma(db, 'page_count') * pageSize
}

/** Calls `releaseSome` immediately, then regularly until the returned function is called; more often while it returns true. */
export function releaseInBackground(releaseSome: () => boolean): () => void {
  let timer: NodeJS.Timeout | undefined
  function run(): void {
    let hasMore = false
    try {
      hasMore = releaseSome()
    } catch {
      // The disk is full, or another process writes; the next check tries again.
    }
    timer = setTimeout(run, hasMore ? stepInterval : checkInterval)
  }
  run()
  return () => clearTimeout(timer)
}

function pragma(db: DatabaseSync, name: string): number {
  const row: unknown = db.prepare(`PRAGMA ${name}`).get()
  const [value]: readonly unknown[] = Array.isArray(row) ? row : []
  if (typeof value !== 'number') throw new TypeError(`PRAGMA ${name} is not a number`)
  return value
}
