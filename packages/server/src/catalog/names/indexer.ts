import type { BucketId } from '../records.ts'
import type { IndexedNames, NameTask } from './index-tasks.ts'
import { blockSize } from './segments.ts'

/** Indexes the names of a catalog in the background. */
export interface NameIndexer {
  /** Records that this process has added items, and indexes the names of their bucket if they may fill a block. */
  added(bucketId: BucketId, count: number): void
  /** As added, if the bucket is not known. */
  addedToAny(): void
  /** Receives the number of names that a search of a bucket has read because they are not indexed. */
  scanned(bucketId: BucketId, count: number): void
  /** Indexes the names of all buckets. Resolves when this process has no task left, also if one has failed. */
  indexAll(): Promise<void>
  /** Waits for the task in progress, and ends. */
  close(): Promise<void>
}

/** Added items after which the tasks of a bucket are looked up. Several processes may fill one block. */
const lookupInterval = blockSize / 4

interface IndexerParts {
  /** The buckets with a block that is not indexed. */
  readonly pending: () => Promise<readonly BucketId[]>
  readonly claim: (bucketId: BucketId) => Promise<NameTask | null>
  readonly build: (task: NameTask) => Promise<IndexedNames['segment']>
  readonly store: (names: IndexedNames) => Promise<unknown>
  /** A search reads the names that are not indexed, so an error only makes it slower. */
  readonly onError: (error: unknown) => void
  readonly closeBuilder: () => Promise<void>
}

export function createNameIndexer({
  pending,
  claim,
  build,
  store,
  onError,
  closeBuilder,
}: IndexerParts): NameIndexer {
  let addedCount = 0
  const counts = new Map<BucketId, number>()
  const waiting = new Set<BucketId>()
  let running: Promise<void> | null = null
  let isClosed = false

  async function indexBucket(bucketId: BucketId): Promise<void> {
    while (!isClosed) {
      const task = await claim(bucketId)
      if (task === null) return
      const segment = await build(task)
      await store({ bucketId, segment, replaced: task.merged.map(({ id }) => id) })
    }
  }

  async function run(): Promise<void> {
    for (const bucketId of waiting) {
      waiting.delete(bucketId)
      try {
        await indexBucket(bucketId)
      } catch (error) {
        if (!isClosed) onError(error)
      }
    }
    running = null
  }

  function index(bucketIds: readonly BucketId[]): Promise<void> {
    for (const bucketId of bucketIds) waiting.add(bucketId)
    running ??= run()
    return running
  }

  async function indexAll(): Promise<void> {
    try {
      await index(await pending())
    } catch (error) {
      if (!isClosed) onError(error)
    }
  }

  return {
    added(bucketId, count) {
      const sum = (counts.get(bucketId) ?? 0) + count
      if (sum < lookupInterval) counts.set(bucketId, sum)
      else {
        counts.delete(bucketId)
        void index([bucketId])
      }
    },

    addedToAny() {
      addedCount += 1
      if (addedCount % lookupInterval === 0) void indexAll()
    },

    scanned(bucketId, count) {
      if (count >= 2 * blockSize) void index([bucketId])
    },

    indexAll,

    async close() {
      isClosed = true
      waiting.clear()
      await running
      await closeBuilder()
    },
  }
}
