import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { isNew } from '../upkeep.ts'
import { prepareLocateItem } from './item-locations.ts'
import { explainOpenError } from './open-errors.ts'
import { prepareReads } from './reads.ts'
import { prepareServability } from './servability.ts'
import { createRun } from './statements.ts'
import { requireNoTransfer } from './transfer-marks.ts'

/**
 * Prepares the statements, which fails if an index is missing, and reads one row, which fails if the table is damaged. Rejects with
 * DataDirectoryError: it is `async` so that what it throws becomes a rejection.
 */
export async function openReads(db: DatabaseSync, directory: string) {
  try {
    db.exec('PRAGMA query_only = ON')
    requireNoTransfer(db, directory)
    const reads = prepareReads(db, prepareLocateItem(db))
    const run = createRun(db)
    run(isNew())
    return {
      reads,
      epoch: reads.epoch(),
      servability: prepareServability(db),
      run,
    }
  } catch (error) {
    throw explainOpenError(join(directory, 'catalog.db'), error)
  }
}
