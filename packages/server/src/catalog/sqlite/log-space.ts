import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { freeForCatalog, isDiskFull, releaseBallast } from './ballast.ts'

/** With less free space than this the write-ahead log is kept short. Bytes. */
const low = 8 * 1024 * 1024
const short = 256 * 1024

const logSize = (path: string): number => statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0

/**
 * Frees space on the disk of the catalog: removes the ballast, and writes the log back so that it can be cut off. False
 * where the disk is not full, or nothing can be freed.
 */
export function makeRoom(db: DatabaseSync): boolean {
  const path = db.location()
  if (path === null || db.isTransaction || !isDiskFull(dirname(path))) return false
  const released = releaseBallast(dirname(path))
  const before = logSize(path)
  truncateLog(db)
  return released || logSize(path) < before
}

/** Cuts the log off after a commit where the disk has little room: by itself it never gets shorter. */
export function keepLogShort(db: DatabaseSync): void {
  const path = db.location()
  if (path === null) return
  try {
    if (freeForCatalog(dirname(path)) < low && logSize(path) > short) truncateLog(db)
  } catch {
    // A disk whose free space cannot be read must not end the writer.
  }
}

function truncateLog(db: DatabaseSync): void {
  try {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // The log stays whole and is written back later.
  }
}
