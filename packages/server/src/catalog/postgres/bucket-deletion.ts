import { bucketDeleteEvent, deletionKey } from '../audit-log/events.ts'
import type { Changes } from '../changes.ts'
import type { DeletedChunk } from '../records.ts'
import { integer } from '../rows.ts'
import { trashOf } from '../trash.ts'
import { recordEvents } from './audit-log.ts'
import { removeOldest, type Transaction } from './media-rows.ts'
import { removeNames, removeNamesBelow } from './name-index.ts'

/** One step of the deletion of a bucket. Its row is locked, if it exists. */
export async function deleteBucketChunk(
  transaction: Transaction,
  { id, limit, now, by }: Changes['delete-bucket-chunk']['input'],
): Promise<DeletedChunk> {
  const { session, buckets } = transaction
  if (!buckets.has(id)) return { items: 0, tombstones: [], isDeleted: true }
  // The first step of a deletion is its event, whether or not the last one is reached.
  const mark = "INSERT INTO meta (key, value) VALUES ($1, '') ON CONFLICT DO NOTHING"
  if ((await session.change(mark, deletionKey(id))) === 1 && by !== undefined)
    await recordEvents(session, [bucketDeleteEvent(id, buckets.get(id).name, by)])
  await session.run('UPDATE tokens SET revoked_at = $1 WHERE bucket_id = $2 AND revoked_at IS NULL', now, id)
  const { last, ...listed } = await removeOldest(transaction, id, limit)
  // Step by step, as the items.
  await removeNamesBelow(session, id, last + 1)
  const trashed = await removeOldest(transaction, trashOf(id), limit)
  const removed = {
    items: listed.items + trashed.items,
    tombstones: [...listed.tombstones, ...trashed.tombstones],
  }
  const [row = []] = await session.run(
    `SELECT (EXISTS (SELECT FROM media WHERE bucket_id = ANY (ARRAY[$1::int8, -$1::int8]))
      OR EXISTS (SELECT FROM uploads WHERE bucket_id = $1))::int4`,
    id,
  )
  const isDeleted = integer(row, 0) === 0
  if (isDeleted) {
    await session.run('DELETE FROM meta WHERE key = $1', deletionKey(id))
    await session.run(
      'DELETE FROM keyed_requests WHERE token_id IN (SELECT id FROM tokens WHERE bucket_id = $1)',
      id,
    )
    await session.run('DELETE FROM tokens WHERE bucket_id = $1', id)
    await session.run('DELETE FROM ranks WHERE bucket_id = ANY (ARRAY[$1::int8, -$1::int8])', id)
    await removeNames(session, id)
    await removeNames(session, trashOf(id))
    await session.run('DELETE FROM buckets WHERE id = ANY (ARRAY[$1::int8, -$1::int8])', id)
    buckets.remove(id)
  }
  return { ...removed, isDeleted }
}
