import { itemUnknown } from '../core/faults.ts'
import { type ItemId, isItemId } from '../core/ids.ts'
import { resolvesWithin } from '../core/tasks.ts'
import type { Actor } from '../core/tokens.ts'
import { tooManyExpired } from '../storage/catalog/buckets.ts'
import { type Catalog, expiryLimit } from '../storage/catalog/catalog.ts'
import type { BucketId, RemovedItems } from '../storage/catalog/records.ts'
import { type BlobDeletionParts, deleteBlobs } from './blob-deletion.ts'

/** Ids in the order in which they were requested, each once. */
interface DeletedItems {
  readonly deleted: readonly string[]
  /** The bucket has no such items. */
  readonly missing: readonly string[]
}

export type ItemRemover = ReturnType<typeof createItemRemover>

/** Milliseconds after a failed removal of expired items until the next one. */
const expiryRetryInterval = 1_000

/** Deletes the row, with bytes in the catalog, before it returns, or moves it to the trash (Z1); deletes a file, then its tombstone, in the background. */
export function createItemRemover(
  parts: BlobDeletionParts & {
    readonly catalog: Pick<Catalog, 'removeItems' | 'purgeItems' | 'expireItems'>
    /** Milliseconds that a request waits for removals at the most. */
    readonly longestExpiry?: number
  },
) {
  const { longestExpiry = 5_000 } = parts
  const expiring = new Map<BucketId, Promise<void>>()
  /** No removal of expired items begins before this time of performance.now(). */
  let expireFrom = 0
  const waiting: ItemId[] = []
  let deleting: Promise<void> | null = null

  async function deleteWaiting(): Promise<void> {
    while (waiting.length > 0) await deleteBlobs(parts, waiting.splice(0))
    deleting = null
  }

  function deleteLater({ tombstones }: RemovedItems): void {
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

  async function expireOrWait(bucketId: BucketId): Promise<void> {
    try {
      await expireBucket(bucketId)
    } catch {
      expireFrom = performance.now() + expiryRetryInterval
    } finally {
      expiring.delete(bucketId)
    }
  }

  async function removeWith(
    remove: (ids: readonly ItemId[]) => Promise<RemovedItems>,
    ids: readonly string[],
  ): Promise<DeletedItems> {
    const wanted = [...new Set(ids)]
    const known = wanted.filter(isItemId)
    if (known.length === 0) return { deleted: [], missing: wanted }
    const removed = await remove(known)
    deleteLater(removed)
    const deleted: ReadonlySet<string> = new Set(removed.ids)
    return { deleted: [...deleted], missing: wanted.filter((id) => !deleted.has(id)) }
  }

  /** Deletes the items in one transaction (docs/interface.md M4). The ids may be any texts. */
  function removeMany(bucketId: BucketId, ids: readonly string[], by: Actor): Promise<DeletedItems> {
    return removeWith((known) => parts.catalog.removeItems(bucketId, known, by), ids)
  }

  return {
    /** Resolves when the item is deleted durably (docs/interface.md M2). `id` may be any text. Throws Fault `media-unknown`. */
    async remove(bucketId: BucketId, id: string, by: Actor): Promise<void> {
      const { missing } = await removeMany(bucketId, [id], by)
      if (missing.length > 0) throw itemUnknown()
    },
    removeMany,
    /** As removeMany, permanently, items of the bucket's trash (Z4). */
    purge(bucketId: BucketId, ids: readonly string[], by: Actor): Promise<DeletedItems> {
      return removeWith((known) => parts.catalog.purgeItems(bucketId, known, by), ids)
    },
    /**
     * Deletes the items of the bucket that have expired (docs/interface.md E2), in the background. Concurrent calls share the work. The
     * returned function waits for it, and throws Fault `catalog-busy` if it takes long. It resolves if the work fails, after which nothing
     * is tried for a second: the sweep reports why.
     */
    removeExpired(bucketId: BucketId): () => Promise<void> {
      if (!expiring.has(bucketId) && performance.now() >= expireFrom)
        expiring.set(bucketId, expireOrWait(bucketId))
      const running = expiring.get(bucketId)
      return async () => {
        if (running !== undefined && !(await resolvesWithin(running, longestExpiry))) throw tooManyExpired()
      }
    },
    /** Resolves when no deletion of bytes is in progress. */
    async settled(): Promise<void> {
      await Promise.allSettled(expiring.values())
      await deleting
    },
  }
}

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
