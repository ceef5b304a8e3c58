import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { creationSettings } from '../../sqlite/creation-settings.ts'
import { databaseSpace, releasePages } from '../../sqlite/free-pages.ts'
import type { CatalogVacuum } from '../vacuum.ts'
import { freeBytes } from './ballast.ts'
import { openDataDirectory } from './data-directory.ts'
import { DataDirectoryError } from './open-errors.ts'
import { asFault } from './sqlite-errors.ts'
import { runTransaction } from './transaction.ts'

export function openSqliteVacuum(directory: string): CatalogVacuum {
  const db = openDataDirectory(directory)
  const path = db.location() ?? directory
  return {
    canReleaseInSteps: databaseSpace(db).isIncremental,
    space: () => databaseSpace(db),
    releaseSome: () => mapped(() => runTransaction(db, () => releasePages(db))),
    finish: () => mapped(() => db.exec('PRAGMA wal_checkpoint(TRUNCATE)')),
    rewrite() {
      const { size, free } = databaseSpace(db)
      // A temporary copy, and the old pages in a journal.
      const needed = 2 * (size - free)
      if (freeBytes(directory) < needed)
        throw new DataDirectoryError(
          `${path} cannot be rewritten: that needs ${needed} bytes of free space on its disk. Free some space, then try again.`,
        )
      mapped(() => rewrite(db, dirname(path)))
    },
    close() {
      if (db.isOpen) db.close()
    },
  }
}

function rewrite(db: DatabaseSync, directory: string): void {
  // The page size cannot change in WAL mode. The switch fails if another process has the catalog open.
  db.exec('PRAGMA journal_mode = DELETE')
  try {
    // The temporary copy holds all rows, so it must be neither in memory nor on another disk.
    db.exec('PRAGMA temp_store = FILE')
    db.exec(`PRAGMA temp_store_directory = '${directory.replaceAll("'", "''")}'`)
    db.exec(`${creationSettings}; VACUUM`)
  } finally {
    db.exec("PRAGMA temp_store_directory = ''; PRAGMA journal_mode = WAL")
  }
}

function mapped<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw asFault(error)
  }
}
