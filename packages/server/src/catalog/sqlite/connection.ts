import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { applyCreationSettings } from '../../sqlite/creation-settings.ts'
import { waitWhileBusy } from '../../sqlite/wait-while-busy.ts'

/** Milliseconds that a read waits for a lock. In WAL mode reads wait only while the log is recovered after a crash. */
export const readTimeout = 5_000
/** KiB of pages that one connection caches. */
const cacheSize = 64 * 1024
/** Bytes to which a checkpoint truncates the write-ahead log. */
const journalSizeLimit = 64 * 1024 * 1024

/**
 * Opens `catalog.db` in an existing directory; statements return rows as arrays, which rows.ts reads.
 * `busyTimeout` is SQLite's own, in milliseconds: `readTimeout` to read; writers leave it at 0 and wait in transaction.ts.
 */
export function openConnection(directory: string, busyTimeout = 0): DatabaseSync {
  const db = new DatabaseSync(join(directory, 'catalog.db'), { returnArrays: true, timeout: busyTimeout })
  try {
    applyCreationSettings(db)
    // The switch to WAL ignores the busy timeout and fails while another process is switching.
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
