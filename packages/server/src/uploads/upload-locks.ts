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

interface Holder {
  readonly released: Promise<void>
  readonly abort: AbortController
  /** Since when the holder waits for bytes, by performance.now(); null while it processes some. */
  waitingSince: number | null
}

/** Milliseconds. */
const lockGrace = 1_000

/** The locks of a process that knows all holders. */
export class OwnUploadLocks implements UploadLocks {
  readonly #grace: number
  /** The holder of each lock, or the last request that waits for it. */
  readonly #holders = new Map<UploadId, Holder>()

  constructor({ grace = lockGrace } = {}) {
    this.#grace = grace
  }

  async hold<T>(id: UploadId, work: (lock: UploadLock) => Promise<T>): Promise<T> {
    const previous = this.#holders.get(id)
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const holder: Holder = { released, abort: new AbortController(), waitingSince: null }
    this.#holders.set(id, holder)
    try {
      if (previous && !(await this.#isReleased(previous))) {
        previous.abort.abort()
        await previous.released
      }
      return await work({
        signal: holder.abort.signal,
        watch: (source) => watchedBy(holder, source),
        isStalled: () => this.#isStalled(holder),
      })
    } finally {
      if (this.#holders.get(id) === holder) this.#holders.delete(id)
      release()
    }
  }

  async waitForWriter(id: UploadId): Promise<void> {
    const holder = this.#holders.get(id)
    if (!holder || (await this.#isReleased(holder)) || !this.#isStalled(holder)) return
    holder.abort.abort()
    await holder.released
  }

  isHeld(id: UploadId): boolean {
    return this.#holders.has(id)
  }

  async allReleased(): Promise<void> {
    while (this.#holders.size > 0)
      await Promise.all([...this.#holders.values()].map(({ released }) => released))
  }

  #isStalled({ waitingSince }: Holder): boolean {
    return waitingSince !== null && performance.now() - waitingSince >= this.#grace
  }

  /** False when the holder still has the lock after the grace period. */
  #isReleased({ released }: Holder): Promise<boolean> {
    return resolvesWithin(released, this.#grace)
  }
}

async function* watchedBy(holder: Holder, source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
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
export class SharedUploadLocks implements UploadLocks {
  readonly #shared: SharedLocks
  readonly #own = new OwnUploadLocks()

  constructor(shared: SharedLocks) {
    this.#shared = shared
  }

  hold<T>(id: UploadId, work: (lock: UploadLock) => Promise<T>): Promise<T> {
    return this.#own.hold(id, async ({ signal, watch, isStalled }) => {
      const takenOver = new AbortController()
      const lease = await this.#shared.acquire(id, { abort: () => takenOver.abort(), isStalled })
      try {
        return await work({ watch, isStalled, signal: AbortSignal.any([signal, takenOver.signal]) })
      } finally {
        lease.release()
      }
    })
  }

  async waitForWriter(id: UploadId): Promise<void> {
    if (this.#own.isHeld(id)) await this.#own.waitForWriter(id)
    else await this.#shared.waitForWriter(id)
  }

  allReleased(): Promise<void> {
    return this.#own.allReleased()
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

interface Entry {
  readonly claimant: Claimant
  readonly released: Promise<void>
}

/** The locks of uploads that several processes share. The rules are those of UploadLocks. */
export class UploadLockTable {
  readonly #grace: number
  /** The claims of each upload. The first one holds the lock. */
  readonly #queues = new Map<UploadId, Entry[]>()

  constructor({ grace = lockGrace } = {}) {
    this.#grace = grace
  }

  /** Calls `granted` when the lock is free, in the order of the calls. */
  claim(id: UploadId, claimant: Claimant): Claim {
    const queue = this.#queues.get(id) ?? []
    this.#queues.set(id, queue)
    const { promise: released, resolve } = Promise.withResolvers<void>()
    const entry = { claimant, released }
    if (queue.push(entry) === 1) claimant.granted()
    else void this.#takeOver(queue, entry)
    return {
      release: () => {
        if (this.#remove(id, queue, entry)) resolve()
      },
    }
  }

  /** As UploadLocks.waitForWriter. */
  async waitForWriter(id: UploadId): Promise<void> {
    const last = this.#queues.get(id)?.at(-1)
    if (last === undefined || (await resolvesWithin(last.released, this.#grace))) return
    if (await last.claimant.abortIfStalled()) await last.released
  }

  isHeld(id: UploadId): boolean {
    return this.#queues.has(id)
  }

  /** Aborts the claim before this one after the grace period, until this one is the first. */
  async #takeOver(queue: readonly Entry[], entry: Entry): Promise<void> {
    for (let index = queue.indexOf(entry); index > 0; index = queue.indexOf(entry)) {
      const previous = queue[index - 1]
      if (previous === undefined || (await resolvesWithin(previous.released, this.#grace))) continue
      if (!queue.includes(entry)) return
      previous.claimant.abort()
      await previous.released
    }
  }

  /** Grants the lock to the next claim. False if the claim was removed before. */
  #remove(id: UploadId, queue: Entry[], entry: Entry): boolean {
    const index = queue.indexOf(entry)
    if (index === -1) return false
    queue.splice(index, 1)
    if (queue.length === 0) this.#queues.delete(id)
    else if (index === 0) queue[0]?.claimant.granted()
    return true
  }
}
