import { randomBase32 } from '../core/ids.ts'
import { runInSteps } from '../core/tasks.ts'
import type { Actor } from '../core/token-rules.ts'
import { type BlobDeletionParts, deleteBlobs } from '../items/blob-deletion.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { BucketId } from '../storage/catalog/records.ts'
import { dropUpload } from '../uploads/resumable-uploads.ts'

/** Items for each transaction. A running server's writes wait for it, a few milliseconds. */
const batchLength = 100

/** Milliseconds of a lease. If its process ends, another one goes on after this time. */
const leaseTime = 10_000

/** Milliseconds after which a lease is extended. */
const extendAfter = 3_000

/** Nobody waits for the removal, so it rests for three times as long as it works. */
const rest = 3

interface RemovalParts extends Omit<BlobDeletionParts, 'catalog' | 'blobs'> {
  readonly catalog: Pick<
    Catalog,
    | 'claimDeletion'
    | 'deleteBucket'
    | 'deleteBucketChunk'
    | 'uploadsOf'
    | 'removableBlobs'
    | 'clearTombstones'
    | 'findUpload'
    | 'removeUpload'
  >
  readonly blobs: Pick<BlobStore, 'remove' | 'removalsAtOnce' | 'partialUploads'>
  readonly now: () => number
}

/** Identifies a process that removes what deleted buckets held. */
export const newDeletionOwner = (): string => randomBase32(12)

/**
 * Deletes the bucket for everybody; what it held is left to BucketRemoval of this owner. `has-items` if it has items, also in its trash, and they
 * are not to be deleted. Null if there is no such bucket. Throws Fault `precondition-failed` if settingsTag of the bucket is not `expected`, where that is given.
 */
export const deleteBucket = (
  { catalog, now }: Pick<RemovalParts, 'catalog' | 'now'>,
  name: string,
  deletesItems: boolean,
  owner: string,
  by?: Actor,
  expected: string | null = null,
): Promise<BucketId | 'has-items' | null> =>
  catalog.deleteBucket(name, deletesItems, now(), { owner, lifetime: leaseTime }, by, expected)

/** The removal of what a deleted bucket held, by one process. Rows are removed before their bytes, as for a single item. */
export class BucketRemoval {
  readonly #parts: RemovalParts
  readonly #id: BucketId
  readonly #owner: string
  #claimedAt = Number.NEGATIVE_INFINITY
  /** Removed items, and those of them whose bytes are removed. */
  items = 0
  erased = 0

  constructor(parts: RemovalParts, id: BucketId, owner: string) {
    this.#parts = parts
    this.#id = id
    this.#owner = owner
  }

  /** Removes some items, or what else belongs to the bucket. Returns whether something is left, and no other process removes it. */
  async step(): Promise<boolean> {
    const { catalog, now } = this.#parts
    if (!(await this.#isClaimed())) return false
    const chunk = await catalog.deleteBucketChunk(this.#id, batchLength, now())
    const { items, tombstones } = chunk
    this.items += items
    this.erased += items - tombstones.length + (await deleteBlobs(this.#parts, tombstones))
    if (chunk.isDeleted) return false
    for (const upload of await catalog.uploadsOf(this.#id)) await dropUpload(this.#parts, upload)
    return true
  }

  async #isClaimed(): Promise<boolean> {
    if (performance.now() - this.#claimedAt < extendAfter) return true
    this.#claimedAt = performance.now()
    return await this.#claim(leaseTime)
  }

  #claim(lifetime: number): Promise<boolean> {
    return this.#parts.catalog.claimDeletion(this.#id, { owner: this.#owner, lifetime })
  }

  /** Lets another process go on at once. */
  async release(): Promise<void> {
    await this.#claim(0)
  }
}

interface DeleterParts extends RemovalParts {
  readonly catalog: RemovalParts['catalog'] & Pick<Catalog, 'deletedBucketAfter'>
  readonly onRemoved: (bucketId: BucketId, items: number) => void
  readonly onFailure: (bucketId: BucketId, error: unknown) => void
}

/** Deletes buckets, and removes in the background what they held, one bucket after another, with pauses. */
export class BucketDeleter {
  readonly #parts: DeleterParts
  readonly #owner = newDeletionOwner()
  #isStopping = false
  #isWanted = false
  #running: Promise<void> | null = null

  constructor(parts: DeleterParts) {
    this.#parts = parts
  }

  /** As deleteBucket (docs/interface.md BK10). */
  async delete(
    name: string,
    deletesItems: boolean,
    by: Actor,
    expected: string | null,
  ): Promise<BucketId | 'has-items' | null> {
    const deleted = await deleteBucket(this.#parts, name, deletesItems, this.#owner, by, expected)
    // Rejects only if the list of deleted buckets cannot be read; the sweep reports that.
    if (typeof deleted === 'number') this.removeDeleted().catch(() => undefined)
    return deleted
  }

  /** Removes what deleted buckets held that no other process removes. Calls during a run make it look again. */
  removeDeleted(): Promise<void> {
    this.#isWanted = true
    this.#running ??= this.#removeAll().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  async #removeAll(): Promise<void> {
    const { catalog } = this.#parts
    while (this.#isWanted && !this.#isStopping) {
      this.#isWanted = false
      let id = await catalog.deletedBucketAfter(0)
      while (id !== null && !this.#isStopping) {
        await this.#remove(id)
        id = await catalog.deletedBucketAfter(id)
      }
    }
  }

  async #remove(id: BucketId): Promise<void> {
    const { onRemoved, onFailure } = this.#parts
    const removal = new BucketRemoval(this.#parts, id, this.#owner)
    try {
      let isLeft = true
      await runInSteps(
        async () => {
          isLeft = await removal.step()
          return isLeft
        },
        () => this.#isStopping,
        rest,
      )
      if (isLeft) await removal.release()
      else if (removal.items > 0) onRemoved(id, removal.items)
    } catch (error) {
      onFailure(id, error)
    }
  }

  /** Resolves when the step in progress has ended. Another process, or the next start, goes on. */
  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#running?.catch(() => undefined)
  }
}
