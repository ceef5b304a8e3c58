import { itemUnknown } from '../core/faults.ts'
import { type ItemId, isItemId } from '../core/ids.ts'
import { resolvesWithin, runInSteps } from '../core/tasks.ts'
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

/** The removal of the expired items of a bucket. */
interface Expiring {
  /** Resolves when they are removed or counted, or when this has failed. */
  readonly counted: Promise<void>
  readonly removed: Promise<void>
}

/** Milliseconds after a failed removal of expired items until the next one. */
const expiryRetryInterval = 1_000

/** Deletes the row, with bytes in the catalog, before it returns, or moves it to the trash (Z1); deletes a file, then its tombstone, in the background. */
export function createItemRemover(
  parts: BlobDeletionParts & {
    readonly catalog: Pick<Catalog, 'removeItems' | 'purgeItems' | 'expireItems'>
    /** Called when so many items have expired that they are removed later: how many are left. */
    readonly onManyExpired?: (bucketId: BucketId, left: number) => void
    /** Milliseconds that a request waits for removals at the most. */
    readonly longestExpiry?: number
  },
) {
  const { longestExpiry = 5_000 } = parts
  const expiring = new Map<BucketId, Expiring>()
  let isStopping = false
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

  /** Removes the expired items of a bucket in steps. Calls `onCounted` when no read has to pass by those that are left. */
  async function expireBucket(bucketId: BucketId, onCounted: () => void): Promise<void> {
    let isCounted = false
    const step = async () => {
      const { ids, tombstones, counted, waiting } = await parts.catalog.expireItems(bucketId)
      if (counted === 0 && !isCounted) {
        isCounted = true
        onCounted()
        if (waiting > 0) parts.onManyExpired?.(bucketId, waiting)
      }
      await deleteBlobs(parts, tombstones)
      return { isLast: ids.length < expiryLimit, isCounting: counted > 0 }
    }
    const stepAfterCounting = async () => {
      for (;;) {
        const { isLast, isCounting } = await step()
        if (isLast || !isCounting || isStopping) return !isLast
      }
    }
    await runInSteps(stepAfterCounting, () => isStopping)
  }

  /** Starts the removal of the expired items of a bucket, unless it is running. */
  function startExpiring(bucketId: BucketId): Expiring {
    const running = expiring.get(bucketId)
    if (running !== undefined) return running
    const counted = Promise.withResolvers<void>()
    const removed = expireBucket(bucketId, counted.resolve)
    const started = { counted: counted.promise, removed }
    expiring.set(bucketId, started)
    removed
      .catch(() => {
        expireFrom = performance.now() + expiryRetryInterval
      })
      .finally(() => {
        expiring.delete(bucketId)
        counted.resolve()
      })
    return started
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

  async function settled(): Promise<void> {
    await Promise.allSettled([...expiring.values()].map(({ removed }) => removed))
    await deleting
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
     * returned function waits until they are removed or, if they are many, until they are counted, so that reads do not pass by them; it throws
     * Fault `catalog-busy` if that takes long. It resolves if the work fails, after which nothing is tried for a second: the sweep reports why.
     */
    removeExpired(bucketId: BucketId): () => Promise<void> {
      const running = performance.now() < expireFrom ? expiring.get(bucketId) : startExpiring(bucketId)
      return async () => {
        if (running !== undefined && !(await resolvesWithin(running.counted, longestExpiry)))
          throw tooManyExpired()
      }
    },
    /** Deletes the items of the bucket that have expired. Resolves when all are removed. */
    expire: (bucketId: BucketId): Promise<void> => startExpiring(bucketId).removed,
    /** Resolves when no deletion of bytes is in progress. */
    settled,
    /** As settled. Items that have expired and are not removed yet are removed by the next start. */
    async stop(): Promise<void> {
      isStopping = true
      await settled()
    },
  }
}
