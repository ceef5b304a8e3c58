import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { freeBytes, isDiskFull, releaseBallast } from './ballast.ts'

/** Below this free space, in bytes, the write-ahead log is truncated after each commit that leaves it longer than `maxLogSize`. */
const lowSpace = 8 * 1024 * 1024
const maxLogSize = 256 * 1024

const logSize = (path: string): number => statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0

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
