import type { MediaId } from '../../core/media-id.ts'
import type { BucketId, NewMedia } from '../records.ts'
import { text } from '../rows.ts'
import type { Session } from './session.ts'

/** Records when the next item of the bucket or its trash expires. Call it after items that expire were added, restored or removed. */
export async function refreshExpiry(session: Session, bucketId: BucketId): Promise<void> {
  await session.run(
    `UPDATE buckets SET next_expiry = least(
      (SELECT min(item_expires_at) FROM media WHERE bucket_id = $1 AND item_expires_at IS NOT NULL),
      (SELECT min(item_expires_at) FROM media WHERE bucket_id = -$1::int8 AND item_expires_at IS NOT NULL)
    ) WHERE id = $1`,
    bucketId,
  )
}

/** The ids of at most `limit` expired items of a bucket or a trash, the first to expire first. */
export async function expiredItems(
  session: Session,
  bucketId: BucketId,
  now: number,
  limit: number,
): Promise<MediaId[]> {
  const rows = await session.run(
    'SELECT id FROM media WHERE bucket_id = $1 AND item_expires_at <= $2 ORDER BY item_expires_at LIMIT $3',
    ...[bucketId, now, limit],
  )
  return rows.map((row) => text(row, 0) as MediaId)
}

/** Records when these items expire. Sends its statements before it returns. */
export async function setExpiries(
  session: Session,
  bucketId: BucketId | null,
  items: readonly Pick<NewMedia, 'id' | 'expiresAt'>[],
): Promise<void> {
  const expiring = items.flatMap(({ id, expiresAt }): [MediaId, number][] =>
    expiresAt == null ? [] : [[id, expiresAt]],
  )
  if (expiring.length === 0) return
  const set = session.run(
    `UPDATE media SET item_expires_at = expiring.at FROM unnest($1::text[], $2::int8[]) AS expiring (id, at)
    WHERE media.id = expiring.id`,
    expiring.map(([id]) => id),
    expiring.map(([, at]) => at),
  )
  await Promise.all([set, bucketId !== null && refreshExpiry(session, bucketId)])
}
