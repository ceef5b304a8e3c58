import type { BucketId, Catalog } from '../../catalog/catalog.ts'
import { isMediaId, type MediaId } from '../../core/media-id.ts'
import { mediaUnknown } from '../find-media.ts'
import { type BlobDeletionParts, deleteBlobs } from './delete-blobs.ts'

export interface MediaRemover {
  /** Resolves when the item is gone for good (docs/interface.md M2). Throws Fault `media-unknown`; `id` is any text. */
  remove(bucketId: BucketId, id: string): Promise<void>
  /** Resolves when no bytes of removed items wait for their removal. */
  settled(): Promise<void>
}

/** Ids whose tombstones are cleared in one transaction, at most. */
const batchLength = 100

/** The row goes first, for the caller; the bytes, then the tombstone, go in the background. */
export function createMediaRemover(
  parts: BlobDeletionParts & { readonly catalog: Pick<Catalog, 'removeMedia'> },
): MediaRemover {
  const waiting: MediaId[] = []
  let erasing: Promise<void> | null = null

  async function eraseWaiting(): Promise<void> {
    while (waiting.length > 0) await deleteBlobs(parts, waiting.splice(0, batchLength))
    erasing = null
  }

  return {
    async remove(bucketId, id) {
      if (!isMediaId(id) || !(await parts.catalog.removeMedia(bucketId, id))) throw mediaUnknown()
      waiting.push(id)
      erasing ??= eraseWaiting()
    },
    async settled() {
      await erasing
    },
  }
}
