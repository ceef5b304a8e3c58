import type { Catalog } from '../../catalog/catalog.ts'
import type { BucketId, RemovedMedia } from '../../catalog/records.ts'
import type { Actor } from '../../core/actor.ts'
import { isMediaId, type MediaId } from '../../core/media-id.ts'
import { mediaUnknown } from '../find-media.ts'
import { type BlobDeletionParts, deleteBlobs } from './delete-blobs.ts'

/** Ids in the order in which they were requested, each once. */
interface DeletedMedia {
  readonly deleted: readonly string[]
  /** The bucket has no such items. */
  readonly missing: readonly string[]
}

export interface MediaRemover {
  /** Resolves when the item is deleted durably (docs/interface.md M2). `id` may be any text. Throws Fault `media-unknown`. */
  remove(bucketId: BucketId, id: string, by: Actor): Promise<void>
  /** Deletes the items in one transaction (docs/interface.md M4). The ids may be any texts. */
  removeMany(bucketId: BucketId, ids: readonly string[], by: Actor): Promise<DeletedMedia>
  /** As removeMany, permanently, items of the bucket's trash (Z4). */
  purge(bucketId: BucketId, ids: readonly string[], by: Actor): Promise<DeletedMedia>
  /** Resolves when no deletion of bytes is in progress. */
  settled(): Promise<void>
}

/** Deletes the row, with bytes in the catalog, before it returns, or moves it to the trash (Z1); deletes a file, then its tombstone, in the background. */
export function createMediaRemover(
  parts: BlobDeletionParts & { readonly catalog: Pick<Catalog, 'removeMedia' | 'purgeMedia'> },
): MediaRemover {
  const waiting: MediaId[] = []
  let deleting: Promise<void> | null = null

  async function deleteWaiting(): Promise<void> {
    while (waiting.length > 0) await deleteBlobs(parts, waiting.splice(0))
    deleting = null
  }

  async function removeWith(
    remove: (ids: readonly MediaId[]) => Promise<RemovedMedia>,
    ids: readonly string[],
  ): Promise<DeletedMedia> {
    const wanted = [...new Set(ids)]
    const known = wanted.filter(isMediaId)
    if (known.length === 0) return { deleted: [], missing: wanted }
    const removed = await remove(known)
    if (removed.tombstones.length > 0) {
      waiting.push(...removed.tombstones)
      deleting ??= deleteWaiting()
    }
    const deleted: ReadonlySet<string> = new Set(removed.ids)
    return { deleted: [...deleted], missing: wanted.filter((id) => !deleted.has(id)) }
  }

  const removeMany: MediaRemover['removeMany'] = (bucketId, ids, by) =>
    removeWith((known) => parts.catalog.removeMedia(bucketId, known, by), ids)

  return {
    async remove(bucketId, id, by) {
      const { missing } = await removeMany(bucketId, [id], by)
      if (missing.length > 0) throw mediaUnknown()
    },
    removeMany,
    purge: (bucketId, ids, by) => removeWith((known) => parts.catalog.purgeMedia(bucketId, known, by), ids),
    async settled() {
      await deleting
    },
  }
}
