import { itemUnknown } from '../core/faults.ts'
import { type ItemId, isItemId } from '../core/ids.ts'
import { resolvesWithin } from '../core/tasks.ts'
import type { Actor } from '../core/tokens.ts'
import { tooManyExpired } from '../storage/catalog/buckets.ts'
import { type Catalog, expiryLimit } from '../storage/catalog/catalog.ts'
import type { BucketId, RemovedItems } from '../storage/catalog/records.ts'
import { type BlobDeletionParts, deleteBlobs } from './blob-deletion.ts'
import { type BucketWork, runTurn, turnTime, workInTurns } from './bucket-turns.ts'

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
  /** Resolves when the removal has ended, to whether expired items are left. */
  readonly isLeft: Promise<boolean>
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
    /** Milliseconds after which the sweep goes on with another bucket. */
    readonly turn?: number
  },
) {
  const { longestExpiry = 5_000, turn = turnTime } = parts
  const expiring = new Map<BucketId, Expiring>()
  let isStopping = false
  /** The time of performance.now() before which requests do not begin the removal of a bucket again, because it has failed. */
  const retryFrom = new Map<BucketId, number>()
  /** Buckets with many expired items that were reported. */
  const reported = new Set<BucketId>()
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

  /** Removes the expired items of a bucket in steps, for `time` milliseconds, as runTurn. Calls `onCounted` when no read has to pass by those that are left. */
  async function expireBucket(bucketId: BucketId, time: number, onCounted: () => void): Promise<boolean> {
    let isCounted = false
    const step = async () => {
      const { ids, tombstones, counted, waiting } = await parts.catalog.expireItems(bucketId)
      if (counted === 0 && !isCounted) {
        isCounted = true
        onCounted()
        if (waiting > 0 && !reported.has(bucketId)) parts.onManyExpired?.(bucketId, waiting)
        if (waiting > 0) reported.add(bucketId)
      }
      await deleteBlobs(parts, tombstones)
      return { isLeft: ids.length === expiryLimit, isCounting: counted > 0 }
    }
    const stepAfterCounting = async () => {
      for (;;) {
        const { isLeft, isCounting } = await step()
        if (!isLeft || !isCounting || isStopping) return isLeft
      }
    }
    const isLeft = await runTurn(stepAfterCounting, time, () => isStopping)
    if (!isLeft) reported.delete(bucketId)
    return isLeft
  }

  /** Starts the removal of the expired items of a bucket, unless it is running. */
  function startExpiring(bucketId: BucketId, time = Number.POSITIVE_INFINITY): Expiring {
    const running = expiring.get(bucketId)
    if (running !== undefined) return running
    const counted = Promise.withResolvers<void>()
    const isLeft = expireBucket(bucketId, time, counted.resolve)
    const started = { counted: counted.promise, isLeft }
    expiring.set(bucketId, started)
    isLeft
      .then(
        () => retryFrom.delete(bucketId),
        () => retryFrom.set(bucketId, performance.now() + expiryRetryInterval),
      )
      .finally(() => {
        expiring.delete(bucketId)
        counted.resolve()
      })
    return started
  }

  /** Removes the expired items of a bucket, or waits for the removal that a request has started, as takeTurn of BucketWork. */
  async function takeTurn(bucketId: BucketId): Promise<boolean> {
    const running = expiring.get(bucketId)
    if (running === undefined) return startExpiring(bucketId, turn).isLeft
    return !(await resolvesWithin(running.isLeft, turn))
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
    await Promise.allSettled([...expiring.values()].map(({ isLeft }) => isLeft))
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
      const isDelayed = performance.now() < (retryFrom.get(bucketId) ?? 0)
      const running = isDelayed ? expiring.get(bucketId) : startExpiring(bucketId)
      return async () => {
        if (running !== undefined && !(await resolvesWithin(running.counted, longestExpiry)))
          throw tooManyExpired()
      }
    },
    /** Deletes the items of the listed buckets that have expired, as workInTurns. */
    expire: (work: Pick<BucketWork, 'list' | 'onFailure'>): Promise<void> =>
      workInTurns({ ...work, takeTurn, isStopping: () => isStopping }),
    /** Resolves when no deletion of bytes is in progress. */
    settled,
    /** As settled. Items that have expired and are not removed yet are removed by the next start. */
    async stop(): Promise<void> {
      isStopping = true
      await settled()
    },
  }
}
