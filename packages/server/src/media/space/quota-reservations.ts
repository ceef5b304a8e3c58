import type { Catalog } from '../../catalog/catalog.ts'
import type { BucketId } from '../../catalog/records.ts'
import { bucketDeleted } from '../../core/fault.ts'
import { type Amount, requireWithinQuota } from '../../core/quota.ts'
import { createSlab, type Slab } from '../../core/slab.ts'

/** The part of a bucket's quota that one upload in progress has reserved. */
export interface QuotaReservation {
  /** Raises the reservation to this total. Throws Fault `quota-exceeded`. */
  hold(amount: Amount): Promise<void>
  /** Call it before the commit: until the release, others that exceed the quota wait for the result. */
  settle(): void
  release(): void
}

/** Reserves nothing and never throws. */
export const noReservation: QuotaReservation = { hold: async () => {}, settle() {}, release() {} }

/** All reservations of one bucket. */
interface Held {
  items: number
  bytes: number
  /** Commits in progress; each resolves at its release. */
  readonly settling: Slab<Promise<void>>
}

/**
 * Reservations for uploads within one request, in the memory of this process. A best-effort early check: the catalog
 * enforces the quota at the commit.
 */
export function createQuotaReservations(parts: {
  readonly catalog: Pick<Catalog, 'bucket'>
}): (bucketId: BucketId) => QuotaReservation {
  const all = new Map<BucketId, Held>()

  return (bucketId) => {
    const held = all.get(bucketId) ?? { items: 0, bytes: 0, settling: createSlab() }
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
          // A commit in progress may be counted twice.
          if (held.settling.size() === 0) throw error
          await Promise.race(held.settling.values())
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
        const key = held.settling.add(promise)
        settled = () => {
          held.settling.remove(key)
          resolve()
        }
      },

      release() {
        held.items -= mine.items
        held.bytes -= mine.bytes
        mine = { items: 0, bytes: 0 }
        const settle = settled
        settled = () => {}
        settle()
      },
    }
  }
}
