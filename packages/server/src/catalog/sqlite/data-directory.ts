import type { DatabaseSync } from 'node:sqlite'
import { openConnection } from './connection.ts'
import { makeDirectory } from './make-directory.ts'
import { migrate } from './migrate.ts'

/** Opens the catalog at this program's version; makes the directory, for its owner alone, and the catalog. */
export function openDataDirectory(directory: string, busyTimeout = 0): DatabaseSync {
  makeDirectory(directory)
  const db = openConnection(directory, busyTimeout)
  try {
    migrate(db)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}
