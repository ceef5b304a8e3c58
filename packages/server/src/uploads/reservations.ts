import { bucketDeleted, Fault } from '../core/faults.ts'
import { type Amount, leftOf, requireWithinLimits, requireWithinQuota } from '../core/quotas.ts'
import { createSlab, type Slab } from '../core/slab.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { BucketId, Grant, TokenId } from '../storage/catalog/records.ts'

// Reservations for uploads within one request, in the memory of this process. They are early checks, before bytes are on the disk: the catalog
// enforces quotas and limits at the commit.

/** What one upload in progress has reserved. */
export interface Reservation {
  /** Raises the reservation to this total. Throws Fault `quota-exceeded` and `token-limit-exceeded`. */
  hold(amount: Amount): Promise<void>
  /** Call it before the commit: until the release, others that exceed the quota wait for the result. */
  settle(): void
  release(): void
}

/** All reservations of one bucket, or of one token with limits. */
interface Held {
  items: number
  bytes: number
  /** Reservations that are not released. */
  users: number
  /** Commits in progress; each resolves at its release. */
  readonly settling: Slab<Promise<void>>
}

/** Throws a Fault unless `more` fits beside what others hold. It awaits nothing, so that of several which are checked in one tick, each counts for the next. */
type RequireRoom = (held: Amount, more: Amount) => void

/** `readRoom` returns null if there is no limit. */
function createReservations<Key>(
  readRoom: (key: Key) => Promise<RequireRoom | null>,
): (key: Key) => Reservation {
  const all = new Map<Key, Held>()

  return (key) => {
    let held: Held | null = null
    let mine: Amount = { items: 0, bytes: 0 }
    let unlimited = false
    let settled: (() => void) | null = null

    function join(): Held {
      if (held !== null) return held
      held = all.get(key) ?? { items: 0, bytes: 0, users: 0, settling: createSlab() }
      held.users += 1
      all.set(key, held)
      return held
    }

    async function take(held: Held, more: Amount): Promise<void> {
      for (;;) {
        try {
          const requireRoom = await readRoom(key)
          unlimited = requireRoom === null
          requireRoom?.(held, more)
          mine = { items: mine.items + more.items, bytes: mine.bytes + more.bytes }
          held.items += more.items
          held.bytes += more.bytes
          return
        } catch (error) {
          // A commit in progress may be counted twice.
          if (!(error instanceof Fault) || held.settling.size() === 0) throw error
          await Promise.race(held.settling.values())
        }
      }
    }

    return {
      async hold({ items, bytes }) {
        const more = { items: Math.max(0, items - mine.items), bytes: Math.max(0, bytes - mine.bytes) }
        if (unlimited || more.items + more.bytes === 0) return
        await take(join(), more)
      },

      settle() {
        if (settled !== null) return
        const { settling } = join()
        const { promise, resolve } = Promise.withResolvers<void>()
        const place = settling.add(promise)
        settled = () => {
          settling.remove(place)
          resolve()
        }
      },

      release() {
        if (held === null) return
        held.items -= mine.items
        held.bytes -= mine.bytes
        held.users -= 1
        if (held.users === 0) all.delete(key)
        held = null
        mine = { items: 0, bytes: 0 }
        const settle = settled
        settled = null
        settle?.()
      },
    }
  }
}

export type Reserve = ReturnType<typeof createUploadReservations>

/** Reservations of the quota of a bucket (docs/interface.md Q2), and of what is left of the limits of a token (T10). */
export function createUploadReservations({
  catalog,
}: {
  readonly catalog: Pick<Catalog, 'bucket' | 'token'>
}) {
  const ofBucket = createReservations<BucketId>(async (id) => {
    const bucket = await catalog.bucket(id)
    if (bucket === null) throw bucketDeleted()
    if (bucket.maxItems === null && bucket.maxBytes === null) return null
    return (held, more) => {
      const taken = {
        items: bucket.items + bucket.reservedItems + held.items,
        bytes: bucket.bytes + bucket.reservedBytes + held.bytes,
      }
      requireWithinQuota(bucket, taken, more)
    }
  })
  const ofLimits = createReservations<TokenId>(async (id) => {
    const limits = (await catalog.token(id))?.limits ?? null
    if (limits === null || (limits.maxItems === null && limits.maxBytes === null)) return null
    return (held, more) => {
      const { used, reserved } = limits
      const others = { items: reserved.items + held.items, bytes: reserved.bytes + held.bytes }
      requireWithinLimits(limits, leftOf(limits, { used, reserved: others }), more)
    }
  })
  return ({ bucketId, limits }: Pick<Grant, 'bucketId' | 'limits'>): Reservation =>
    limits === null ? ofBucket(bucketId) : both(ofBucket(bucketId), ofLimits(limits.id))
}

const both = (one: Reservation, other: Reservation): Reservation => ({
  async hold(amount) {
    await one.hold(amount)
    await other.hold(amount)
  },
  settle() {
    one.settle()
    other.settle()
  },
  release() {
    one.release()
    other.release()
  },
})

/** The idempotency key of a request (docs/interface.md I1). */
export interface RequestKey {
  readonly tokenId: TokenId
  readonly key: string
}

/** The requests in progress with one key. */
interface Keyed {
  readonly reservation: Reservation
  requests: number
  /** The calls of `hold` run one after the other. */
  holding: Promise<void>
}

/**
 * Reservations of requests with an idempotency key. Those in progress with one key have one reservation, because one of them stores the items
 * (docs/interface.md I2). A repetition of a request that is stored needs no space; it has no more bytes than the first one.
 */
export function createKeyedReservations({
  catalog,
  reserve,
  now,
}: {
  readonly catalog: Pick<Catalog, 'findKeyed'>
  readonly reserve: Reserve
  readonly now: () => number
}): (key: RequestKey, grant: Pick<Grant, 'bucketId' | 'limits'>) => Reservation {
  const all = new Map<string, Keyed>()

  return (key, grant) => {
    const name = `${key.tokenId} ${key.key}`
    const keyed = all.get(name) ?? { reservation: reserve(grant), requests: 0, holding: Promise.resolve() }
    keyed.requests += 1
    all.set(name, keyed)
    let first: { readonly bytes: number | null } | null | undefined
    let [isCommitting, isReleased] = [false, false]

    const find = async () => {
      first = await catalog.findKeyed(key, now())
      return first
    }

    function inTurn(work: () => Promise<void>): Promise<void> {
      const done = keyed.holding.then(work)
      keyed.holding = done.catch(() => undefined)
      return done
    }

    return {
      async hold(amount) {
        const stored = first ?? (first === undefined ? await find() : null)
        if (stored !== null) return requireRepeatable(stored, amount)
        try {
          await inTurn(() => keyed.reservation.hold(amount))
        } catch (error) {
          // Another request with the key may have been stored in the meantime.
          const found = await find()
          if (found === null) throw error
          requireRepeatable(found, amount)
        }
      },

      settle() {
        isCommitting = true
        keyed.reservation.settle()
      },

      release() {
        if (isReleased) return
        isReleased = true
        keyed.requests -= 1
        if (keyed.requests === 0) all.delete(name)
        // After a commit, the items are counted as stored; if it failed, another request reserves again.
        if (keyed.requests === 0 || isCommitting) keyed.reservation.release()
      },
    }
  }
}

/** Throws Fault `idempotency-key-reused` for a request that has more bytes than the first one with its key. */
function requireRepeatable({ bytes }: { readonly bytes: number | null }, amount: Amount): void {
  if (bytes !== null && amount.bytes > bytes)
    throw new Fault('idempotency-key-reused', 'This Idempotency-Key was used for other files; use a new one.')
}
