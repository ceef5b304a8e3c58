import type { DatabaseSync } from 'node:sqlite'

/** A database keeps this share of free pages for later rows, and this many bytes, before they are released in the background. */
const keptShare = 0.25
const keptBytes = 64 * 1024 * 1024

/** Bytes that one step releases. It takes a few milliseconds, during which other writes wait. */
const stepSize = 1024 * 1024

/** Milliseconds between two steps, and between two checks whether there is much free space. */
const stepInterval = 100
const checkInterval = 1_000

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
  const { size, free } = databaseSpace(db)
  return free > keptBytes && free > keptShare * size
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
