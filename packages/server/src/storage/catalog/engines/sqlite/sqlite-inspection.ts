import { join } from 'node:path'
import { databaseSpace, releasePages } from '../../../sqlite.ts'
import { type CopyableInspection, createInspection } from '../../checks/inspection.ts'
import { locationKey } from '../../feed/history.ts'
import type { CatalogVacuum } from '../../upkeep.ts'
import { copySnapshot } from './copy-snapshot.ts'
import { findDamage } from './damage.ts'
import { openDataDirectory } from './data-directory.ts'
import {
  asFault,
  createRun,
  prepareSnapshots,
  readTimeout,
  runTransaction,
  withFaults,
} from './sqlite-database.ts'

/** Opens the rows for a check, a backup or a restore, on a separate connection. */
export async function openSqliteInspection(directory: string): Promise<CopyableInspection> {
  const db = openDataDirectory(directory, readTimeout)
  const run = createRun(db)
  const snapshots = prepareSnapshots(db)

  return {
    ...createInspection({
      name: 'sqlite',
      query: async (query) => run(query),
      querySnapshot: async (query) => snapshots.run(() => run(query())),
      write: async (work) => withFaults(() => runTransaction(db, () => run(work()))),
      damage: async () => findDamage(db),
      async close() {
        if (db.isOpen) db.close()
      },
    }),

    async snapshot(into, earlier) {
      try {
        const catalogOf = (place: string) => join(place, 'catalog.db')
        return await copySnapshot(catalogOf(directory), catalogOf(into), earlier && catalogOf(earlier))
      } catch (error) {
        throw asFault(error)
      }
    },

    async renew() {
      withFaults(() => runTransaction(db, () => db.exec(renewal)))
    },
  }
}

const renewal = `
  INSERT OR REPLACE INTO meta (key, value) VALUES ('epoch', lower(hex(randomblob(16)))), ('${locationKey}', '');
  DELETE FROM meta WHERE key = 'blobs';
  DELETE FROM upload_parts;
  DELETE FROM upload_pieces;
  DELETE FROM uploads WHERE finished = 0;
  DELETE FROM object_parts;
  DELETE FROM object_uploads;
  UPDATE buckets SET reserved_items = 0, reserved_bytes = 0;
  UPDATE token_limits SET reserved_items = 0, reserved_bytes = 0;
  DELETE FROM tombstones;
  DELETE FROM intents;`

export function openSqliteVacuum(directory: string): CatalogVacuum {
  const db = openDataDirectory(directory)
  return {
    space: () => databaseSpace(db),
    releaseSome: () => withFaults(() => runTransaction(db, () => releasePages(db))),
    finish: () => withFaults(() => db.exec('PRAGMA wal_checkpoint(TRUNCATE)')),
    close() {
      if (db.isOpen) db.close()
    },
  }
}
