import type { DatabaseSync } from 'node:sqlite'
import type { BucketId } from '../records.ts'

/** Records when the next item of the bucket or its trash expires. Call it after items that expire were added, restored or removed. */
export function prepareRefreshExpiry(db: DatabaseSync): (bucketId: BucketId) => void {
  const refresh = db.prepare(`UPDATE buckets SET next_expiry = (SELECT min(first) FROM (
      SELECT min(item_expires_at) AS first FROM media INDEXED BY media_item_expiry
      WHERE bucket_id = ?1 AND item_expires_at IS NOT NULL
      UNION ALL SELECT min(item_expires_at) FROM media INDEXED BY media_item_expiry
      WHERE bucket_id = -?1 AND item_expires_at IS NOT NULL
    )) WHERE id = ?1`)
  return (bucketId) => void refresh.run(bucketId)
}
