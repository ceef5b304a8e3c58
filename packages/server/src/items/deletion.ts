import { itemUnknown } from '../core/faults.ts'
import { type ItemId, isItemId } from '../core/ids.ts'
import { resolvesWithin } from '../core/tasks.ts'
import type { Actor } from '../core/token-rules.ts'
import { tooManyExpired } from '../storage/catalog/buckets.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import { expiryLimit } from '../storage/catalog/items/trash.ts'
import type { BucketId, ItemDetails, RemovedItems } from '../storage/catalog/records.ts'
import { type BlobDeletionParts, deleteBlobs } from './blob-deletion.ts'
import { type BucketWork, runTurn, turnTime, workInTurns } from './bucket-turns.ts'
import { findItem, preconditionFailed } from './item-operations.ts'

/** Ids in the order in which they were requested, each once. */
interface DeletedItems {
  readonly deleted: readonly string[]
  /** The bucket has no such items. */
  readonly missing: readonly string[]
}

/** The removal of the expired items of a bucket. */
interface Expiring {
  /** Resolves when they are removed or counted, or when this has failed. */
  readonly counted: Promise<void>
  /** Resolves when the removal has ended, to whether expired items are left. */
  readonly isLeft: Promise<boolean>
}

/** Milliseconds after a failed removal of expired items until the next one. */
const expiryRetryInterval = 1_000

interface RemoverParts extends BlobDeletionParts {
  readonly catalog: BlobDeletionParts['catalog'] &
    Pick<Catalog, 'item' | 'removeItems' | 'removeUnchanged' | 'replaceItems' | 'purgeItems' | 'expireItems'>
  /** Called when so many items have expired that they are removed later: how many are left. */
  readonly onManyExpired?: (bucketId: BucketId, left: number) => void
  /** Milliseconds that a request waits for removals at the most. */
  readonly longestExpiry?: number
  /** Milliseconds after which the sweep goes on with another bucket. */
  readonly turn?: number
}

/** Deletes the row, with bytes in the catalog, before it returns, or moves it to the trash (Z1); deletes a file, then its tombstone, in the background. */
export class ItemRemover {
  readonly #parts: RemoverParts
  readonly #expiring = new Map<BucketId, Expiring>()
  #isStopping = false
  /** The time of performance.now() before which requests do not begin the removal of a bucket again, because it has failed. */
  readonly #retryFrom = new Map<BucketId, number>()
  /** Buckets with many expired items that were reported. */
  readonly #reported = new Set<BucketId>()
  /** Items whose bytes are to be deleted. */
  readonly #waiting: ItemId[] = []
  #deleting: Promise<void> | null = null

  constructor(parts: RemoverParts) {
    this.#parts = parts
  }

  /** Resolves when the item is deleted durably (docs/interface.md M2). `id` may be any text. Throws Fault `media-unknown`. */
  async remove(bucketId: BucketId, id: string, by: Actor): Promise<void> {
    const { missing } = await this.removeMany(bucketId, [id], by)
    if (missing.length > 0) throw itemUnknown()
  }

  /** As remove, if `accepts` returns true for the present state of the item (docs/interface.md M6). Throws Fault `precondition-failed` too. */
  async removeIf(
    bucketId: BucketId,
    id: string,
    accepts: (item: ItemDetails) => boolean,
    by: Actor,
  ): Promise<void> {
    const { catalog } = this.#parts
    const expected = await findItem(catalog, bucketId, id)
    if (!accepts(expected)) throw preconditionFailed()
    const removed = await catalog.removeUnchanged(bucketId, expected.id, expected, by)
    if (removed === null) throw preconditionFailed()
    if (removed.ids.length === 0) throw itemUnknown()
    this.deleteLater(removed.tombstones)
  }

  /** Deletes the items in one transaction (docs/interface.md M4). The ids may be any texts. */
  removeMany(bucketId: BucketId, ids: readonly string[], by: Actor): Promise<DeletedItems> {
    return this.#removeWith((known) => this.#parts.catalog.removeItems(bucketId, known, by), ids)
  }

  /** As removeMany, of items that others replace: their keys pass to these (OK10). The ids of the successors may be any texts too. */
  replaceMany(
    bucketId: BucketId,
    ids: readonly string[],
    successors: Readonly<Record<string, string>>,
    by: Actor,
  ): Promise<DeletedItems> {
    const known = Object.fromEntries(
      Object.entries(successors).flatMap(([id, successor]) => (isItemId(successor) ? [[id, successor]] : [])),
    )
    return this.#removeWith((found) => this.#parts.catalog.replaceItems(bucketId, found, known, by), ids)
  }

  /** As removeMany, permanently, items of the bucket's trash (Z4). */
  purge(bucketId: BucketId, ids: readonly string[], by: Actor): Promise<DeletedItems> {
    return this.#removeWith((known) => this.#parts.catalog.purgeItems(bucketId, known, by), ids)
  }

  async #removeWith(
    remove: (ids: readonly ItemId[]) => Promise<RemovedItems>,
    ids: readonly string[],
  ): Promise<DeletedItems> {
    const wanted = [...new Set(ids)]
    const known = wanted.filter(isItemId)
    if (known.length === 0) return { deleted: [], missing: wanted }
    const removed = await remove(known)
    this.deleteLater(removed.tombstones)
    const deleted: ReadonlySet<string> = new Set(removed.ids)
    return { deleted: [...deleted], missing: wanted.filter((id) => !deleted.has(id)) }
  }

  /** Deletes the bytes of removed items, or of parts of objects, and then their tombstones, in the background. */
  deleteLater(tombstones: readonly ItemId[]): void {
    if (tombstones.length === 0) return
    this.#waiting.push(...tombstones)
    this.#deleting ??= this.#deleteWaiting()
  }

  async #deleteWaiting(): Promise<void> {
    while (this.#waiting.length > 0) await deleteBlobs(this.#parts, this.#waiting.splice(0))
    this.#deleting = null
  }

  /**
   * Deletes the items of the bucket that have expired (docs/interface.md E2), in the background. Concurrent calls share the work. The
   * returned function waits until they are removed or, if they are many, until they are counted, so that reads do not pass by them; it throws
   * Fault `catalog-busy` if that takes long. It resolves if the work fails, after which nothing is tried for a second: the sweep reports why.
   */
  removeExpired(bucketId: BucketId): () => Promise<void> {
    const isDelayed = performance.now() < (this.#retryFrom.get(bucketId) ?? 0)
    const running = isDelayed ? this.#expiring.get(bucketId) : this.#startExpiring(bucketId)
    const { longestExpiry = 5_000 } = this.#parts
    return async () => {
      if (running !== undefined && !(await resolvesWithin(running.counted, longestExpiry)))
        throw tooManyExpired()
    }
  }

  /** Deletes the items of the listed buckets that have expired, as workInTurns. */
  expire(work: Pick<BucketWork, 'list' | 'onFailure'>): Promise<void> {
    return workInTurns({
      ...work,
      takeTurn: (bucketId) => this.#takeTurn(bucketId),
      isStopping: () => this.#isStopping,
    })
  }

  /** Removes the expired items of a bucket, or waits for the removal that a request has started, as takeTurn of BucketWork. */
  async #takeTurn(bucketId: BucketId): Promise<boolean> {
    const { turn = turnTime } = this.#parts
    const running = this.#expiring.get(bucketId)
    if (running === undefined) return this.#startExpiring(bucketId, turn).isLeft
    return !(await resolvesWithin(running.isLeft, turn))
  }

  /** Starts the removal of the expired items of a bucket, unless it is running. */
  #startExpiring(bucketId: BucketId, time = Number.POSITIVE_INFINITY): Expiring {
    const running = this.#expiring.get(bucketId)
    if (running !== undefined) return running
    const counted = Promise.withResolvers<void>()
    const isLeft = this.#expireBucket(bucketId, time, counted.resolve)
    const started = { counted: counted.promise, isLeft }
    this.#expiring.set(bucketId, started)
    isLeft
      .then(
        () => this.#retryFrom.delete(bucketId),
        () => this.#retryFrom.set(bucketId, performance.now() + expiryRetryInterval),
      )
      .finally(() => {
        this.#expiring.delete(bucketId)
        counted.resolve()
      })
    return started
  }

  /** Removes the expired items of a bucket in steps, for `time` milliseconds, as runTurn. Calls `onCounted` when no read has to pass by those that are left. */
  async #expireBucket(bucketId: BucketId, time: number, onCounted: () => void): Promise<boolean> {
    let isCounted = false
    const stepAfterCounting = async () => {
      for (;;) {
        const { ids, tombstones, counted, waiting } = await this.#parts.catalog.expireItems(bucketId)
        if (counted === 0 && !isCounted) {
          isCounted = true
          onCounted()
          if (waiting > 0) this.#reportMany(bucketId, waiting)
        }
        await deleteBlobs(this.#parts, tombstones)
        // Requests wait until the items are counted, so these steps are one.
        const isLeft = ids.length === expiryLimit
        if (!isLeft || counted === 0 || this.#isStopping) return isLeft
      }
    }
    const isLeft = await runTurn(stepAfterCounting, time, () => this.#isStopping)
    if (!isLeft) this.#reported.delete(bucketId)
    return isLeft
  }

  #reportMany(bucketId: BucketId, left: number): void {
    if (!this.#reported.has(bucketId)) this.#parts.onManyExpired?.(bucketId, left)
    this.#reported.add(bucketId)
  }

  /** Resolves when no deletion of bytes is in progress. */
  async idle(): Promise<void> {
    await Promise.allSettled([...this.#expiring.values()].map(({ isLeft }) => isLeft))
    await this.#deleting
  }

  /** As idle. Items that have expired and are not removed yet are removed by the next start. */
  async stop(): Promise<void> {
    this.#isStopping = true
    await this.idle()
  }
}
