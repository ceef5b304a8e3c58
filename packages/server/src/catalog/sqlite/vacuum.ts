import { databaseSpace, releasePages } from '../../sqlite/free-pages.ts'
import type { CatalogVacuum } from '../vacuum.ts'
import { openDataDirectory } from './data-directory.ts'
import { asFault } from './sqlite-errors.ts'
import { runTransaction } from './transaction.ts'

export function openSqliteVacuum(directory: string): CatalogVacuum {
  const db = openDataDirectory(directory)
  return {
    space: () => databaseSpace(db),
    releaseSome: () => mapped(() => runTransaction(db, () => releasePages(db))),
    finish: () => mapped(() => db.exec('PRAGMA wal_checkpoint(TRUNCATE)')),
    close() {
      if (db.isOpen) db.close()
    },
  }
}

function mapped<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw asFault(error)
  }
}
