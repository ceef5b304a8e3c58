import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { integer } from '../rows.ts'
import { movedKey, movedText } from '../transfer.ts'
import { readMeta } from '../upkeep.ts'
import { reclaimSpaceToOpen } from './ballast.ts'
import { openConnection } from './connection.ts'
import { makeDirectory } from './make-directory.ts'
import { migrate } from './migrate.ts'
import { DataDirectoryError, explainOpenError } from './open-errors.ts'
import { one } from './rows.ts'
import { createRun } from './statements.ts'
import { requireNoTransferMark } from './transfer-marks.ts'

/**
 * Opens the catalog and migrates it to this program's version; creates the directory, accessible to its owner only, and the catalog if
 * they do not exist. Throws DataDirectoryError and CatalogVersionError, also for a catalog that `mediabucket migrate` has not completed,
 * or whose rows it has moved.
 */
export function openDataDirectory(directory: string, busyTimeout = 0): DatabaseSync {
  requireNoTransferMark(directory)
  const db = openForTransfer(directory, busyTimeout)
  const place = join(directory, 'catalog.db')
  try {
    const settings = createRun(db)(readMeta(movedKey))
    if (settings !== null) throw new DataDirectoryError(movedText(place, settings))
    return db
  } catch (error) {
    db.close()
    throw explainOpenError(place, error)
  }
}

/** As openDataDirectory, for `mediabucket migrate`. */
export function openForTransfer(directory: string, busyTimeout = 0): DatabaseSync {
  makeDirectory(directory)
  const path = join(directory, 'catalog.db')
  requireIntactLog(path)
  try {
    reclaimSpaceToOpen(directory)
    const db = openConnection(directory, busyTimeout)
    try {
      requireComplete(db, path)
      migrate(db)
      return db
    } catch (error) {
      db.close()
      throw error
    }
  } catch (error) {
    throw explainOpenError(path, error)
  }
}

/**
 * The first four bytes of a write-ahead log, in the two byte orders of its checksums; zeros after a power failure before its
 * first sync. See https://sqlite.org/fileformat2.html#walformat.
 */
const logHeaders: ReadonlySet<number> = new Set([0x377f0682, 0x377f0683, 0])

/** SQLite ignores a log with a damaged header, and loses its changes. Throws DataDirectoryError. */
function requireIntactLog(catalog: string): void {
  const path = `${catalog}-wal`
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) < 4) return
  const header = Buffer.alloc(4)
  const descriptor = openSync(path, 'r')
  try {
    readSync(descriptor, header, 0, 4, 0)
  } finally {
    closeSync(descriptor)
  }
  if (!logHeaders.has(header.readUInt32BE()))
    throw new DataDirectoryError(
      `${path} is damaged, and it holds the last changes of the catalog. Restore a backup with mediabucket restore, or move this file away to go on without them.`,
    )
}

/** Throws DataDirectoryError if pages are missing. SQLite notices that only when it reads them, which may be much later. */
function requireComplete(db: DatabaseSync, path: string): void {
  const number = (sql: string) => integer(one(db.prepare(sql)) ?? [], 0)
  const expected = number('PRAGMA page_count') * number('PRAGMA page_size')
  const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0
  // The log first: a running server may checkpoint and truncate it between the two.
  const logSize = sizeOf(`${db.location()}-wal`)
  const found = logSize + sizeOf(path)
  if (found < expected)
    throw new DataDirectoryError(
      `${path} is damaged: it has ${found} bytes of ${expected}. Restore a backup with mediabucket restore.`,
    )
}
