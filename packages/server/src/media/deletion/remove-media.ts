import type { Catalog } from '../../catalog/catalog.ts'
import { expiryLimit } from '../../catalog/changes.ts'
import type { BucketId, RemovedMedia } from '../../catalog/records.ts'
import type { Actor } from '../../core/actor.ts'
import { Fault } from '../../core/fault.ts'
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
  /**
   * Deletes the items of the bucket that have expired (docs/interface.md E2). Concurrent calls share the work, which continues if a call fails
   * because it takes long. Throws Fault `catalog-busy`.
   */
  removeExpired(bucketId: BucketId): Promise<void>
  /** Resolves when no deletion of bytes is in progress. */
  settled(): Promise<void>
}

/** Deletes the row, with bytes in the catalog, before it returns, or moves it to the trash (Z1); deletes a file, then its tombstone, in the background. */
export function createMediaRemover(
  parts: BlobDeletionParts & {
    readonly catalog: Pick<Catalog, 'removeMedia' | 'purgeMedia' | 'expireItems'>
    /** Milliseconds that `removeExpired` takes at the most. */
    readonly longestExpiry?: number
  },
): MediaRemover {
  const { longestExpiry = 5_000 } = parts
  const expiring = new Map<BucketId, Promise<void>>()
  const waiting: MediaId[] = []
  let deleting: Promise<void> | null = null

  async function deleteWaiting(): Promise<void> {
    while (waiting.length > 0) await deleteBlobs(parts, waiting.splice(0))
    deleting = null
  }

  function deleteLater({ tombstones }: RemovedMedia): void {
    if (tombstones.length === 0) return
    waiting.push(...tombstones)
    deleting ??= deleteWaiting()
  }

  async function expireBucket(bucketId: BucketId): Promise<void> {
    for (let count = expiryLimit; count === expiryLimit; ) {
      const removed = await parts.catalog.expireItems(bucketId)
      deleteLater(removed)
      count = removed.ids.length
    }
  }

  async function removeWith(
    remove: (ids: readonly MediaId[]) => Promise<RemovedMedia>,
    ids: readonly string[],
  ): Promise<DeletedMedia> {
    const wanted = [...new Set(ids)]
    const known = wanted.filter(isMediaId)
    if (known.length === 0) return { deleted: [], missing: wanted }
    const removed = await remove(known)
    deleteLater(removed)
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
    async removeExpired(bucketId) {
      const running =
        expiring.get(bucketId) ?? expireBucket(bucketId).finally(() => expiring.delete(bucketId))
      expiring.set(bucketId, running)
      const timeout = Promise.withResolvers<never>()
      const timer = setTimeout(() => timeout.reject(tooManyExpired()), longestExpiry)
      try {
        await Promise.race([running, timeout.promise])
      } finally {
        clearTimeout(timer)
      }
    },
    async settled() {
      await Promise.allSettled(expiring.values())
      await deleting
    },
  }
}

const tooManyExpired = (): Fault =>
  new Fault('catalog-busy', 'Many items of this bucket have expired and are being removed; try again.')
