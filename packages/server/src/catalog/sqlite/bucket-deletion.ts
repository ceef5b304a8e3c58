import type { DatabaseSync } from 'node:sqlite'
import { bucketDeleteEvent, deletionKey } from '../audit-log/events.ts'
import type { Changes } from '../changes.ts'
import type { BucketId, DeletedChunk } from '../records.ts'
import { integer, text } from '../rows.ts'
import { trashOf } from '../trash.ts'
import { prepareRecordEvents } from './audit-log.ts'
import type { MediaRows } from './media-rows.ts'
import type { NameIndexRows } from './name-index.ts'
import { all, one } from './rows.ts'

/** One step of the deletion of a bucket; to be called within a transaction. */
export type DeleteBucketChunk = (input: Changes['delete-bucket-chunk']['input']) => DeletedChunk

export function prepareDeleteBucketChunk(
  db: DatabaseSync,
  media: MediaRows,
  names: NameIndexRows,
): DeleteBucketChunk {
  const revoke = db.prepare('UPDATE tokens SET revoked_at = ? WHERE bucket_id = ? AND revoked_at IS NULL')
  const items = db.prepare('SELECT seq FROM media WHERE bucket_id = ? ORDER BY seq LIMIT ?')
  const isUsed = db.prepare(`SELECT EXISTS (SELECT 1 FROM media WHERE bucket_id IN (?1, -?1))
    OR EXISTS (SELECT 1 FROM uploads WHERE bucket_id = ?1)`)
  // With a reused id, a cached page of the old bucket would be served for the new one.
  const retireId = db.prepare(`INSERT INTO meta (key, value) VALUES ('last_bucket_id', ?1)
    ON CONFLICT DO UPDATE SET value = max(CAST(value AS INTEGER), ?1)`)
  const deletions = [
    'DELETE FROM keyed_requests WHERE token_id IN (SELECT id FROM tokens WHERE bucket_id = ?)',
    'DELETE FROM tokens WHERE bucket_id = ?',
    'DELETE FROM ranks WHERE bucket_id IN (?1, -?1)',
    'DELETE FROM buckets WHERE id IN (?1, -?1)',
  ].map((sql) => db.prepare(sql))

  const nameOf = db.prepare('SELECT name FROM buckets WHERE id = ?')
  const begin = db.prepare("INSERT INTO meta (key, value) VALUES (?, '') ON CONFLICT DO NOTHING")
  const end = db.prepare('DELETE FROM meta WHERE key = ?')
  const record = prepareRecordEvents(db)

  return ({ id, limit, now, by }) => {
    const row = one(nameOf, id)
    // The first step of a deletion is its event, whether or not the last one is reached.
    const isFirst = begin.run(deletionKey(id)).changes === 1
    if (row && isFirst && by !== undefined) record([bucketDeleteEvent(id, text(row, 0), by)])
    revoke.run(now, id)
    const removeSome = (bucketId: BucketId) => {
      const seqs = all(items, bucketId, limit).map((row) => integer(row, 0))
      const tombstones = media.remove(bucketId, seqs)
      // Step by step, as the items.
      names.removeBelow(bucketId, (seqs.at(-1) ?? -1) + 1)
      return { items: seqs.length, tombstones }
    }
    const listed = removeSome(id)
    const trashed = removeSome(trashOf(id))
    const isDeleted = integer(one(isUsed, id) ?? [], 0) === 0
    if (isDeleted) {
      end.run(deletionKey(id))
      names.removeAll(id)
      names.removeAll(trashOf(id))
      retireId.run(id)
      for (const statement of deletions) statement.run(id)
    }
    return {
      items: listed.items + trashed.items,
      tombstones: [...listed.tombstones, ...trashed.tombstones],
      isDeleted,
    }
  }
}
