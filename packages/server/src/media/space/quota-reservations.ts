import type { BucketId, Catalog } from '../../catalog/catalog.ts'
import { bucketDeleted } from '../../core/fault.ts'
import { type Amount, requireWithinQuota } from '../../core/quota.ts'

/** What one upload under way has set aside of its bucket's quota. */
export interface QuotaReservation {
  /** Holds so much in all, never less than before. Throws Fault `quota-exceeded` where that does not fit. */
  hold(amount: Amount): Promise<void>
  /** What is held is about to be committed: others who find no room wait for the release to see what came of it. */
  settle(): void
  release(): void
}

/** Holds nothing and refuses nothing. */
export const noReservation: QuotaReservation = { hold: async () => {}, settle() {}, release() {} }

/** All that is held of one bucket. */
interface Held {
  items: number
  bytes: number
  /** Each resolves when something that was about to be committed is released. */
  readonly settling: Set<Promise<void>>
}

/**
 * Reservations of uploads that are over when their request is: they live in this process alone. They refuse early what
 * cannot succeed, and nothing that can; what is never exceeded is checked by the catalog when it commits.
 */
export function createQuotaReservations(parts: {
  readonly catalog: Pick<Catalog, 'bucket'>
}): (bucketId: BucketId) => QuotaReservation {
  const all = new Map<BucketId, Held>()

  return (bucketId) => {
    const held = all.get(bucketId) ?? { items: 0, bytes: 0, settling: new Set() }
    all.set(bucketId, held)
    let mine: Amount = { items: 0, bytes: 0 }
    let unlimited = false
    let settled = () => {}

    async function take(more: Amount): Promise<void> {
      for (;;) {
        const bucket = await parts.catalog.bucket(bucketId)
        if (bucket === null) throw bucketDeleted()
        unlimited = bucket.maxItems === null && bucket.maxBytes === null
        const taken = {
          items: bucket.items + bucket.reservedItems + held.items,
          bytes: bucket.bytes + bucket.reservedBytes + held.bytes,
        }
        try {
          requireWithinQuota(bucket, taken, more)
          mine = { items: mine.items + more.items, bytes: mine.bytes + more.bytes }
          held.items += more.items
          held.bytes += more.bytes
          return
        } catch (error) {
          // What is being committed may count twice just now.
          if (held.settling.size === 0) throw error
          await Promise.race(held.settling)
        }
      }
    }

    return {
      async hold({ items, bytes }) {
        const more = { items: Math.max(0, items - mine.items), bytes: Math.max(0, bytes - mine.bytes) }
        if (unlimited || more.items + more.bytes === 0) return
        await take(more)
      },

      settle() {
        const { promise, resolve } = Promise.withResolvers<void>()
        held.settling.add(promise)
        settled = () => {
          held.settling.delete(promise)
          resolve()
        }
      },

      release() {
        held.items -= mine.items
        held.bytes -= mine.bytes
        mine = { items: 0, bytes: 0 }
        settled()
      },
    }
  }
}
