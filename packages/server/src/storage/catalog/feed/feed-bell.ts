import type { BucketId } from '../records.ts'

/** Tells the watchers of buckets that there may be changes. It never says which ones: they are read from the table. */
export interface FeedBell {
  /**
   * Calls `onChange` soon after a change of the bucket by any process, until the returned function is called: usually within some milliseconds,
   * and within two seconds if a notification is lost. It is also called when nothing has changed, and first of all once after this call.
   */
  watch(bucketId: BucketId, onChange: () => void): () => void
  /** Calls the watchers of a bucket that this process has changed. */
  ring(bucketId: BucketId): void
  /** Compares the revisions of all watched buckets now, because a change may concern any of them. */
  check(): void
  close(): void
}

interface Watched {
  /** Null before it was read. */
  revision: number | null
  readonly listeners: Set<() => void>
}

/**
 * Compares the revisions of the watched buckets at each interval, which finds the changes of other processes. While no bucket is watched it does
 * nothing. `hasChanged` is asked first: false says that no revision has changed since it was asked before.
 */
export function createFeedBell(parts: {
  readonly revisions: (ids: readonly BucketId[]) => Promise<readonly (readonly [BucketId, number])[]>
  readonly hasChanged?: () => boolean
  /** Milliseconds. */
  readonly interval: () => number
}): FeedBell {
  const { revisions, hasChanged = () => true, interval } = parts
  const buckets = new Map<BucketId, Watched>()
  let timer: NodeJS.Timeout | null = null
  /** Whether a bucket is watched whose revision was not read yet. */
  let hasNew = false
  let isClosed = false

  function call(watched: Watched): void {
    for (const listener of watched.listeners) listener()
  }

  async function compare(): Promise<void> {
    const isChanged = hasChanged()
    if (!isChanged && !hasNew) return
    hasNew = false
    const found = new Map(await revisions([...buckets.keys()]))
    for (const [id, watched] of buckets) {
      // A bucket that was deleted has none: its watchers find out when they read.
      const revision = found.get(id) ?? -1
      if (revision === watched.revision) continue
      watched.revision = revision
      call(watched)
    }
  }

  function schedule(delay = interval()): void {
    if (isClosed || buckets.size === 0) return
    timer = setTimeout(() => {
      timer = null
      // If the catalog cannot be read, the next comparison finds what has changed.
      void compare()
        .catch(() => {
          hasNew = true
        })
        .finally(() => {
          if (timer === null) schedule()
        })
    }, delay)
    timer.unref()
  }

  return {
    watch(bucketId, onChange) {
      const listener = () => onChange()
      const watched = buckets.get(bucketId) ?? { revision: null, listeners: new Set() }
      watched.listeners.add(listener)
      buckets.set(bucketId, watched)
      watched.revision = null
      hasNew = true
      if (timer === null) schedule(0)
      return () => {
        watched.listeners.delete(listener)
        if (watched.listeners.size === 0 && buckets.get(bucketId) === watched) buckets.delete(bucketId)
      }
    },
    ring(bucketId) {
      const watched = buckets.get(bucketId)
      if (watched) call(watched)
    },
    check() {
      if (buckets.size === 0) return
      hasNew = true
      if (timer !== null) clearTimeout(timer)
      schedule(0)
    },
    close() {
      isClosed = true
      if (timer !== null) clearTimeout(timer)
      timer = null
    },
  }
}
