import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { waitWhileBusy } from './transaction.ts'

/** KiB of pages that one connection may keep. */
const cacheSize = 64 * 1024
/** Bytes that the write-ahead log keeps on disk between checkpoints, however long a burst once made it. */
const journalSizeLimit = 64 * 1024 * 1024

/**
 * Opens `catalog.db` in an existing directory; every statement answers arrays, to be read with rows.ts.
 * `busyTimeout` is SQLite's own, in milliseconds: writers leave it at 0 and wait in transaction.ts instead.
 */
export function openConnection(directory: string, busyTimeout = 0): DatabaseSync {
  const db = new DatabaseSync(join(directory, 'catalog.db'), { returnArrays: true, timeout: busyTimeout })
  try {
    // The switch to WAL fails at once while another process makes it too, whatever the busy timeout says.
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
