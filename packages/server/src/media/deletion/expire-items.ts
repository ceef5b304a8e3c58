import type { Catalog } from '../../catalog/catalog.ts'
import { expiryLimit } from '../../catalog/changes.ts'
import { type BlobDeletionParts, deleteBlobs } from './delete-blobs.ts'

/** Deletes the items of all buckets that have expired, with their bytes (docs/interface.md E3). Several servers may do it at the same time. */
export async function removeExpiredItems(parts: {
  readonly catalog: Pick<Catalog, 'expiringBuckets' | 'expireItems'>
  readonly blobDeletion: BlobDeletionParts
  readonly now: () => number
}): Promise<void> {
  const { catalog, blobDeletion, now } = parts
  for (const bucketId of await catalog.expiringBuckets(now()))
    for (let count = expiryLimit; count === expiryLimit; ) {
      const { ids, tombstones } = await catalog.expireItems(bucketId, now())
      await deleteBlobs(blobDeletion, tombstones)
      count = ids.length
    }
}
