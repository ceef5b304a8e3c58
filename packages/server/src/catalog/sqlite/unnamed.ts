import type { DatabaseSync } from 'node:sqlite'
import type { MediaId } from '../../core/media-id.ts'
import { integer, one } from './rows.ts'

/** Returns those ids whose bytes nothing accounts for: no item, no removed one, no unfinished upload. */
export function prepareUnnamed(db: DatabaseSync): (ids: readonly MediaId[]) => MediaId[] {
  const isNamed = db.prepare(`SELECT EXISTS (SELECT 1 FROM media WHERE id = ?1)
    OR EXISTS (SELECT 1 FROM tombstones WHERE id = ?1)
    OR EXISTS (SELECT 1 FROM uploads WHERE media_id = ?1 AND finished = 0)`)
  return (ids) => ids.filter((id) => integer(one(isNamed, id) ?? [], 0) === 0)
}
