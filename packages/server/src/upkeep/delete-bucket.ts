import type { BlobStore } from '../blobs/blobs.ts'
import type { BucketId, Catalog } from '../catalog/catalog.ts'
import { type BlobDeletionParts, deleteBlobs } from '../media/deletion/delete-blobs.ts'
import { dropUpload } from '../media/uploads/remove-upload.ts'

/** Items of one transaction: some milliseconds, for which a running server's writes have to wait. */
const chunk = 100

/**
 * Deletes a bucket with its items, bytes, tokens and resumable uploads, beside a running server. Its tokens are revoked
 * first and its row goes last, so that a deletion which was interrupted is completed by another one; rows go before
 * bytes, as when one item is deleted.
 */
export async function deleteBucket(
  parts: Omit<BlobDeletionParts, 'catalog' | 'blobs'> & {
    readonly catalog: Pick<
      Catalog,
      'deleteBucketChunk' | 'uploadsOf' | 'clearTombstones' | 'upload' | 'removeUpload'
    >
    readonly blobs: Pick<BlobStore, 'remove' | 'partialUploads'>
    readonly now: () => number
    readonly onItems: (removed: number) => void
  },
  id: BucketId,
): Promise<{ items: number; erased: number }> {
  const { catalog } = parts
  let [items, erased] = [0, 0]
  for (;;) {
    const { removed, isDeleted } = await catalog.deleteBucketChunk(id, chunk, parts.now())
    erased += await deleteBlobs(parts, removed)
    items += removed.length
    parts.onItems(items)
    if (isDeleted) return { items, erased }
    for (const upload of await catalog.uploadsOf(id)) await dropUpload(parts, upload)
  }
}
