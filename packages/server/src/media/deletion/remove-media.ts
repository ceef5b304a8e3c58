import type { Catalog } from '../../catalog/catalog.ts'
import type { BucketId } from '../../catalog/records.ts'
import { isMediaId, type MediaId } from '../../core/media-id.ts'
import { mediaUnknown } from '../find-media.ts'
import { type BlobDeletionParts, deleteBlobs } from './delete-blobs.ts'

export interface MediaRemover {
  /** Resolves when the item is deleted durably (docs/interface.md M2). `id` may be any text. Throws Fault `media-unknown`. */
  remove(bucketId: BucketId, id: string): Promise<void>
  /** Resolves when no deletion of bytes is in progress. */
  settled(): Promise<void>
}

/** Deletes the row, with bytes in the catalog, before it returns; deletes a file, then its tombstone, in the background. */
export function createMediaRemover(
  parts: BlobDeletionParts & { readonly catalog: Pick<Catalog, 'removeMedia'> },
): MediaRemover {
  const waiting: MediaId[] = []
  let deleting: Promise<void> | null = null

  async function deleteWaiting(): Promise<void> {
    while (waiting.length > 0) await deleteBlobs(parts, waiting.splice(0))
    deleting = null
  }

  return {
    async remove(bucketId, id) {
      if (!isMediaId(id)) throw mediaUnknown()
      const removed = await parts.catalog.removeMedia(bucketId, id)
      if (removed === null) throw mediaUnknown()
      if (!removed.hasTombstone) return
      waiting.push(id)
      deleting ??= deleteWaiting()
    },
    async settled() {
      await deleting
    },
  }
}
