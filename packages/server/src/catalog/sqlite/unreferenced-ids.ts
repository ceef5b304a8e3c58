import type { DatabaseSync } from 'node:sqlite'
import type { MediaId } from '../../core/media-id.ts'
import { integer } from '../rows.ts'
import { one } from './rows.ts'

/** Returns the ids that no item, tombstone or unfinished upload has. */
export function prepareFindUnreferenced(db: DatabaseSync): (ids: readonly MediaId[]) => MediaId[] {
  const isReferenced = db.prepare(`SELECT EXISTS (SELECT 1 FROM media WHERE id = ?1)
    OR EXISTS (SELECT 1 FROM tombstones WHERE id = ?1)
    OR EXISTS (SELECT 1 FROM uploads WHERE media_id = ?1 AND finished = 0)`)
  return (ids) => ids.filter((id) => integer(one(isReferenced, id) ?? [], 0) === 0)
}
