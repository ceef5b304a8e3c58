import type { MediaId } from '../../core/media-id.ts'
import type { BucketId } from '../records.ts'
import { text } from '../rows.ts'
import { expiryRefresh } from '../trash.ts'
import type { Session } from './session.ts'

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
): Promise<MediaId[]> {
  const rows = await session.run(
    'SELECT id FROM media WHERE bucket_id = $1 AND item_expires_at <= $2 ORDER BY item_expires_at LIMIT $3',
    ...[bucketId, now, limit],
  )
  return rows.map((row) => text(row, 0) as MediaId)
}
