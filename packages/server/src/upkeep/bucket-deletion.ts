import { type BlobDeletionParts, deleteBlobs } from '../items/blob-deletion.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { BucketId } from '../storage/catalog/records.ts'
import { dropUpload } from '../uploads/resumable-uploads.ts'

/** Items for each transaction. A running server's writes wait for it, a few milliseconds. */
const batchLength = 100

/**
 * Deletes a bucket with its items, bytes, tokens and resumable uploads; works while a server is running. Tokens are revoked
 * first and the bucket's row is removed last, so running it again completes an interrupted deletion. Rows are removed before their
 * bytes, as for a single item.
 */
export async function deleteBucket(
  parts: Omit<BlobDeletionParts, 'catalog' | 'blobs'> & {
    readonly catalog: Pick<
      Catalog,
      'deleteBucketChunk' | 'uploadsOf' | 'removableBlobs' | 'clearTombstones' | 'findUpload' | 'removeUpload'
    >
    readonly blobs: Pick<BlobStore, 'remove' | 'removalsAtOnce' | 'partialUploads'>
    readonly now: () => number
    readonly onItems: (removed: number) => void
  },
  id: BucketId,
): Promise<{ items: number; erased: number }> {
  const { catalog } = parts
  let [items, erased] = [0, 0]
  for (;;) {
    const chunk = await catalog.deleteBucketChunk(id, batchLength, parts.now())
    const { tombstones, isDeleted } = chunk
    items += chunk.items
    erased += chunk.items - tombstones.length + (await deleteBlobs(parts, tombstones))
    parts.onItems(items)
    if (isDeleted) return { items, erased }
    for (const upload of await catalog.uploadsOf(id)) await dropUpload(parts, upload)
  }
}
