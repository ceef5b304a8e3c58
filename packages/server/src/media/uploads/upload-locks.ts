import { resolvesWithin } from '../../core/resolves-within.ts'
import type { UploadId } from '../../core/upload-id.ts'

/** The lock on one upload, as given to the request that holds it. */
export interface UploadLock {
  /** Aborted when another request takes the lock over; the holder must stop then. */
  readonly signal: AbortSignal
  /** Passes `source` through and measures how long the holder waits for it (`waitForWriter`). */
  readonly watch: (source: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>
  /** Whether the holder has received no bytes from `source` for the grace period. */
  readonly isStalled: () => boolean
}

/** Exclusive locks, one for each upload: two requests never write to an upload at the same time. */
export interface UploadLocks {
  /**
   * Runs `work` with the lock of the upload, which requests get in the order of their calls. A waiting request is usually
   * a retry after a lost connection: after the grace period the signal of the previous request is aborted.
   */
  hold<T>(id: UploadId, work: (lock: UploadLock) => Promise<T>): Promise<T>

  /**
   * Waits until the present holder releases the lock, but no longer than the grace period. A holder that has received no
   * bytes for that long is aborted; any other continues.
   */
  waitForWriter(id: UploadId): Promise<void>

  /** Resolves when this process holds no lock. */
  allReleased(): Promise<void>
}

/** The locks of a process that knows all holders. */
export interface AllUploadLocks extends UploadLocks {
  isHeld(id: UploadId): boolean
}

interface Holder {
  readonly released: Promise<void>
  readonly abort: AbortController
  /** Since when the holder waits for bytes, by performance.now(); null while it processes some. */
  waitingSince: number | null
}

/** Milliseconds. */
export const lockGrace = 1_000

export function createUploadLocks({ grace = lockGrace } = {}): AllUploadLocks {
  /** The holder of each lock, or the last request that waits for it. */
  const holders = new Map<UploadId, Holder>()

  async function* watched(holder: Holder, source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      holder.waitingSince = performance.now()
      for await (const bytes of source) {
        holder.waitingSince = null
        yield bytes
        holder.waitingSince = performance.now()
      }
    } finally {
      holder.waitingSince = null
    }
  }

  const isStalled = ({ waitingSince }: Holder): boolean =>
    waitingSince !== null && performance.now() - waitingSince >= grace

  /** False when the holder still has the lock after the grace period. */
  const isReleased = ({ released }: Holder): Promise<boolean> => resolvesWithin(released, grace)

  return {
    async hold(id, work) {
      const previous = holders.get(id)
      const { promise: released, resolve: release } = Promise.withResolvers<void>()
      const holder: Holder = { released, abort: new AbortController(), waitingSince: null }
      holders.set(id, holder)
      try {
        if (previous && !(await isReleased(previous))) {
          previous.abort.abort()
          await previous.released
        }
        return await work({
          signal: holder.abort.signal,
          watch: (source) => watched(holder, source),
          isStalled: () => isStalled(holder),
        })
      } finally {
        if (holders.get(id) === holder) holders.delete(id)
        release()
      }
    },

    async waitForWriter(id) {
      const holder = holders.get(id)
      if (!holder || (await isReleased(holder)) || !isStalled(holder)) return
      holder.abort.abort()
      await holder.released
    },

    isHeld: (id) => holders.has(id),

    async allReleased() {
      while (holders.size > 0) await Promise.all([...holders.values()].map(({ released }) => released))
    },
  }
}
