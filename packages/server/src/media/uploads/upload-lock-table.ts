import { resolvesWithin } from '../../core/resolves-within.ts'
import type { UploadId } from '../../core/upload-id.ts'
import { lockGrace } from './upload-locks.ts'

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
