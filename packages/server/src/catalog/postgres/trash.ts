import type { ItemId } from '../../core/media-id.ts'
import type { BucketId, RemovedItems } from '../records.ts'
import { integer, text } from '../rows.ts'
import { expiryOf, expiryRefresh, trashOf } from '../trash.ts'
import { removeByIds, type Transaction } from './media-rows.ts'
import type { Session } from './session.ts'

/** 0 for no trash, and for no bucket. */
export const trashDaysOf = ({ buckets }: Transaction, id: BucketId): number =>
  buckets.has(id) ? buckets.get(id).trashDays : 0

/** Removes items, or moves them to the trash of a bucket that has one. */
export async function removeOrTrash(
  transaction: Transaction,
  bucketId: BucketId,
  ids: readonly ItemId[],
  now: number,
): Promise<RemovedItems> {
  const { session, buckets } = transaction
  const days = trashDaysOf(transaction, bucketId)
  if (days === 0) return removeByIds(transaction, bucketId, ids)
  const rows = await session.run(
    'SELECT trash_items($1, $2::text[], $3, $4)',
    bucketId,
    ids,
    now,
    expiryOf(now, days),
  )
  const trashed = new Set(rows.map((row) => text(row, 0)))
  if (trashed.size > 0) buckets.add(bucketId, { items: -trashed.size })
  return { ids: ids.filter((id) => trashed.has(id)), tombstones: [] }
}

/** Moves the items that have not expired back to the bucket. Returns their ids. Throws Fault `quota-exceeded`. */
export async function restoreItems(
  { session, buckets }: Transaction,
  bucketId: BucketId,
  ids: readonly ItemId[],
  now: number,
): Promise<ItemId[]> {
  const rows = await session.run(
    'SELECT id FROM items WHERE bucket_id = $1 AND id = ANY ($2::text[]) AND expires_at > $3',
    trashOf(bucketId),
    ids,
    now,
  )
  const found = new Set(rows.map((row) => text(row, 0)))
  if (found.size === 0) return []
  // Their bytes are counted already.
  buckets.requireRoom(bucketId, { items: found.size, bytes: 0 })
  await session.run('SELECT restore_items($1, $2::text[])', bucketId, [...found])
  await refreshExpiry(session, bucketId)
  buckets.add(bucketId, { items: found.size })
  return ids.filter((id) => found.has(id))
}

/** Removes items of the trash permanently. */
export async function purgeItems(
  transaction: Transaction,
  bucketId: BucketId,
  ids: readonly ItemId[],
): Promise<RemovedItems> {
  if (ids.length === 0) return { ids: [], tombstones: [] }
  const { session, buckets } = transaction
  const [row = []] = await session.run(
    'SELECT coalesce(sum(size), 0)::int8 FROM items WHERE bucket_id = $1 AND id = ANY ($2::text[])',
    trashOf(bucketId),
    ids,
  )
  const removed = await removeByIds(transaction, trashOf(bucketId), ids)
  if (removed.ids.length > 0) {
    const bytes = integer(row, 0)
    await session.run('UPDATE buckets SET bytes = bytes - $2 WHERE id = $1', bucketId, bytes)
    buckets.add(bucketId, { bytes: -bytes })
  }
  return removed
}

/** As refreshExpiry of trash.ts. */
export async function refreshExpiry(session: Session, bucketId: BucketId): Promise<void> {
  await session.run(expiryRefresh.postgres, bucketId)
}

/** The ids of at most `limit` expired items of a bucket or a trash, the first to expire first. */
export async function expiredItems(
  session: Session,
  bucketId: BucketId,
  now: number,
  limit: number,
): Promise<ItemId[]> {
  const rows = await session.run(
    'SELECT id FROM items WHERE bucket_id = $1 AND item_expires_at <= $2 ORDER BY item_expires_at LIMIT $3',
    ...[bucketId, now, limit],
  )
  return rows.map((row) => text(row, 0) as ItemId)
}
