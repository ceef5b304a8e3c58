import type { UploadId } from '../core/ids.ts'
import { resolvesWithin } from '../core/tasks.ts'

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
const lockGrace = 1_000

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

/** The locks of all processes (UploadLockTable), as one process sees them. */
export interface SharedLocks {
  /** Resolves when this process has the lock. */
  acquire(
    id: UploadId,
    holder: { abort(): void; isStalled(): boolean },
  ): Promise<{
    release(): void
  }>
  waitForWriter(id: UploadId): Promise<void>
}

/** Locks that exclude the requests of this process and of the other processes. */
export function shareUploadLocks(shared: SharedLocks): UploadLocks {
  const local = createUploadLocks()
  return {
    hold: (id, work) =>
      local.hold(id, async (lock) => {
        const takenOver = new AbortController()
        const lease = await shared.acquire(id, {
          abort: () => takenOver.abort(),
          isStalled: lock.isStalled,
        })
        try {
          return await work({ ...lock, signal: AbortSignal.any([lock.signal, takenOver.signal]) })
        } finally {
          lease.release()
        }
      }),

    async waitForWriter(id) {
      if (local.isHeld(id)) await local.waitForWriter(id)
      else await shared.waitForWriter(id)
    },

    allReleased: local.allReleased,
  }
}

/** A process that holds the lock of an upload or waits for it. */
interface Claimant {
  granted(): void
  /** Another process waits for the lock; the holder must stop. */
  abort(): void
  /** Aborts the holder if it has received no bytes for the grace period; returns whether it did. */
  abortIfStalled(): Promise<boolean>
}

interface Claim {
  release(): void
}

/** The locks of uploads that several processes share. The rules are those of UploadLocks. */
export interface UploadLockTable {
  /** Calls `granted` when the lock is free, in the order of the calls. */
  claim(id: UploadId, claimant: Claimant): Claim
  /** As UploadLocks.waitForWriter. */
  waitForWriter(id: UploadId): Promise<void>
  isHeld(id: UploadId): boolean
}

interface Entry {
  readonly claimant: Claimant
  readonly released: Promise<void>
}

export function createUploadLockTable({ grace = lockGrace } = {}): UploadLockTable {
  /** The claims of each upload. The first one holds the lock. */
  const queues = new Map<UploadId, Entry[]>()

  /** Aborts the claim before this one after the grace period, until this one is the first. */
  async function takeOver(queue: readonly Entry[], entry: Entry): Promise<void> {
    for (let index = queue.indexOf(entry); index > 0; index = queue.indexOf(entry)) {
      const previous = queue[index - 1]
      if (previous === undefined || (await resolvesWithin(previous.released, grace))) continue
      if (!queue.includes(entry)) return
      previous.claimant.abort()
      await previous.released
    }
  }

  return {
    claim(id, claimant) {
      const queue = queues.get(id) ?? []
      queues.set(id, queue)
      const { promise: released, resolve } = Promise.withResolvers<void>()
      const entry = { claimant, released }
      if (queue.push(entry) === 1) claimant.granted()
      else void takeOver(queue, entry)
      return {
        release() {
          const index = queue.indexOf(entry)
          if (index === -1) return
          queue.splice(index, 1)
          resolve()
          if (queue.length === 0) queues.delete(id)
          else if (index === 0) queue[0]?.claimant.granted()
        },
      }
    },

    async waitForWriter(id) {
      const last = queues.get(id)?.at(-1)
      if (last === undefined || (await resolvesWithin(last.released, grace))) return
      if (await last.claimant.abortIfStalled()) await last.released
    },

    isHeld: (id) => queues.has(id),
  }
}
