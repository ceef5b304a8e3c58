import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { CatalogStatistics, UpkeepRun } from '../records.ts'
import { integer, text } from '../rows.ts'
import { formatUpkeepRun, parseUpkeepRun, upkeepKey, upkeepKinds } from '../upkeep-runs.ts'
import { one } from './rows.ts'

/** The statistics that are stored in the database. */
export function prepareStatistics(
  db: DatabaseSync,
): () => Omit<CatalogStatistics, 'waitingChanges' | 'logBytes'> {
  const sums = db.prepare(`SELECT coalesce(sum(total), 0), coalesce(sum(bytes), 0),
    coalesce(sum(reserved_items), 0), coalesce(sum(reserved_bytes), 0) FROM buckets WHERE id > 0`)
  const findRun = db.prepare('SELECT value FROM meta WHERE key = ?')
  const runOf = (kind: UpkeepRun['kind']): UpkeepRun[] => {
    const row = one(findRun, upkeepKey(kind))
    return row ? [parseUpkeepRun(kind, text(row, 0))] : []
  }
  return () => {
    const row = one(sums) ?? []
    return {
      items: integer(row, 0),
      bytes: integer(row, 1),
      unfinishedUploads: integer(row, 2),
      unfinishedBytes: integer(row, 3),
      upkeep: upkeepKinds.flatMap(runOf),
    }
  }
}

export function prepareRecordUpkeep(db: DatabaseSync): (run: UpkeepRun) => void {
  const record = db.prepare('INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)')
  return (run) => void record.run(upkeepKey(run.kind), formatUpkeepRun(run))
}

/** Bytes; 0 if there is no log. */
export const logBytes = (directory: string): number =>
  statSync(join(directory, 'catalog.db-wal'), { throwIfNoEntry: false })?.size ?? 0
