import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { makeRoomToOpen } from './ballast.ts'
import { openConnection } from './connection.ts'
import { DataDirectoryError } from './data-directory-error.ts'
import { makeDirectory } from './make-directory.ts'
import { migrate } from './migrate.ts'
import { integer, one } from './rows.ts'
import { explainOpening, requireSoundLog } from './usable-data.ts'

/**
 * Opens the catalog at this program's version; makes the directory, for its owner alone, and the catalog. Throws
 * DataDirectoryError and CatalogVersionError.
 */
export function openDataDirectory(directory: string, busyTimeout = 0): DatabaseSync {
  makeDirectory(directory)
  requireSoundLog(directory)
  const path = join(directory, 'catalog.db')
  try {
    makeRoomToOpen(directory)
    const db = openConnection(directory, busyTimeout)
    try {
      requireWhole(db, path)
      migrate(db)
      return db
    } catch (error) {
      db.close()
      throw error
    }
  } catch (error) {
    throw explainOpening(path, error)
  }
}

/** SQLite notices missing pages when it reads them, which may be much later. */
function requireWhole(db: DatabaseSync, path: string): void {
  const number = (sql: string) => integer(one(db.prepare(sql)) ?? [], 0)
  const expected = number('PRAGMA page_count') * number('PRAGMA page_size')
  const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0
  // The log first: a running server may write it back and cut it off between the two.
  const inLog = sizeOf(`${db.location()}-wal`)
  const found = inLog + sizeOf(path)
  if (found < expected)
    throw new DataDirectoryError(
      `${path} is damaged: it has ${found} bytes of ${expected}. Restore a backup with mediabucket restore.`,
    )
}
