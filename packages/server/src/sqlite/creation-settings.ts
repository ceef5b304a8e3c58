import type { DatabaseSync } from 'node:sqlite'
import { waitWhileBusy } from './wait-while-busy.ts'

/**
 * A row with the bytes of a small file needs fewer pages of 8 kB than of 4 kB. Free pages can be returned to the file system.
 * The settings have an effect on an empty database, and at the VACUUM of another one.
 */
export const creationSettings = 'PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL'

/** Only for an empty database, because the second setting writes to any other one. */
export function applyCreationSettings(db: DatabaseSync): void {
  const row: unknown = db.prepare('PRAGMA page_count').get()
  if (Array.isArray(row) && row[0] === 0) waitWhileBusy(() => db.exec(creationSettings))
}
