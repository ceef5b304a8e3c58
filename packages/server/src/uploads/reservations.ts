import { bucketDeleted, Fault } from '../core/faults.ts'
import { type Amount, leftOf, requireWithinLimits, requireWithinQuota } from '../core/quotas.ts'
import { Slab } from '../core/slab.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { BucketId, Grant, TokenId } from '../storage/catalog/records.ts'

// Reservations for uploads within one request, in the memory of this process. They are early checks, before bytes are on the disk: the catalog
// enforces quotas and limits at the commit.

/** What one upload in progress has reserved. */
export interface Reservation {
  /** Raises the reservation to this total. Throws Fault `quota-exceeded` and `token-limit-exceeded`. */
  hold(amount: Amount): Promise<void>
  /** Call it before the commit: until the release, others that exceed the quota wait for the result. */
  beginCommit(): void
  release(): void
}

/** Of an upload whose quota is reserved otherwise. */
export const noReservation: Reservation = { hold: async () => {}, beginCommit() {}, release() {} }

/** All reservations of one bucket, or of one token with limits. */
interface Held {
  items: number
  bytes: number
  /** Reservations that are not released. */
  users: number
  /** Commits in progress; each resolves at its release. */
  readonly committing: Slab<Promise<void>>
}

/** Throws a Fault unless `more` fits beside what others hold. It awaits nothing, so that of several which are checked in one tick, each counts for the next. */
type RequireRoom = (held: Amount, more: Amount) => void

/** All reservations of one kind. */
class Reservations<Key> {
  readonly #readRoom: (key: Key) => Promise<RequireRoom | null>
  readonly #all = new Map<Key, Held>()

  /** `readRoom` returns null if there is no limit. */
  constructor(readRoom: (key: Key) => Promise<RequireRoom | null>) {
    this.#readRoom = readRoom
  }

  readRoom(key: Key): Promise<RequireRoom | null> {
    return this.#readRoom(key)
  }

  join(key: Key): Held {
    const held = this.#all.get(key) ?? { items: 0, bytes: 0, users: 0, committing: new Slab() }
    held.users += 1
    this.#all.set(key, held)
    return held
  }

  leave(key: Key, held: Held): void {
    held.users -= 1
    if (held.users === 0) this.#all.delete(key)
  }
}

/** A reservation of the quota of one bucket, or of the limits of one token. */
class OneReservation<Key> implements Reservation {
  readonly #all: Reservations<Key>
  readonly #key: Key
  /** Null while nothing is reserved. */
  #held: Held | null = null
  #mine: Amount = { items: 0, bytes: 0 }
  #unlimited = false
  #endCommit: (() => void) | null = null

  constructor(all: Reservations<Key>, key: Key) {
    this.#all = all
    this.#key = key
  }

  async hold({ items, bytes }: Amount): Promise<void> {
    const more = {
      items: Math.max(0, items - this.#mine.items),
      bytes: Math.max(0, bytes - this.#mine.bytes),
    }
    if (this.#unlimited || more.items + more.bytes === 0) return
    await this.#take(this.#join(), more)
  }

  #join(): Held {
    this.#held ??= this.#all.join(this.#key)
    return this.#held
  }

  async #take(held: Held, more: Amount): Promise<void> {
    for (;;) {
      try {
        const requireRoom = await this.#all.readRoom(this.#key)
        this.#unlimited = requireRoom === null
        requireRoom?.(held, more)
        this.#mine = { items: this.#mine.items + more.items, bytes: this.#mine.bytes + more.bytes }
        held.items += more.items
        held.bytes += more.bytes
        return
      } catch (error) {
        // A commit in progress may be counted twice.
        if (!(error instanceof Fault) || held.committing.size() === 0) throw error
        await Promise.race(held.committing.values())
      }
    }
  }

  beginCommit(): void {
    if (this.#endCommit !== null) return
    const { committing } = this.#join()
    const { promise, resolve } = Promise.withResolvers<void>()
    const place = committing.add(promise)
    this.#endCommit = () => {
      committing.remove(place)
      resolve()
    }
  }

  release(): void {
    const held = this.#held
    if (held === null) return
    held.items -= this.#mine.items
    held.bytes -= this.#mine.bytes
    this.#all.leave(this.#key, held)
    this.#held = null
    this.#mine = { items: 0, bytes: 0 }
    const endCommit = this.#endCommit
    this.#endCommit = null
    endCommit?.()
  }
}

/** The reservation of a bucket, and that of a token. */
class BothReservations implements Reservation {
  readonly #one: Reservation
  readonly #other: Reservation

  constructor(one: Reservation, other: Reservation) {
    this.#one = one
    this.#other = other
  }

  async hold(amount: Amount): Promise<void> {
    await this.#one.hold(amount)
    await this.#other.hold(amount)
  }

  beginCommit(): void {
    this.#one.beginCommit()
    this.#other.beginCommit()
  }

  release(): void {
    this.#one.release()
    this.#other.release()
  }
}

/** The reservation of an upload that replaces an item: what that frees counts if there is no room without it. */
export class ReplacingReservation implements Reservation {
  readonly #reservation: Reservation
  readonly #readFreed: () => Promise<Amount>
  /** Null until it is read. */
  #freed: Amount | null = null

  constructor(reservation: Reservation, readFreed: () => Promise<Amount>) {
    this.#reservation = reservation
    this.#readFreed = readFreed
  }

  async hold(amount: Amount): Promise<void> {
    try {
      await this.#hold(amount)
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'quota-exceeded' || this.#freed !== null) throw error
      this.#freed = await this.#readFreed()
      await this.#hold(amount)
    }
  }

  #hold({ items, bytes }: Amount): Promise<void> {
    const freed = this.#freed ?? { items: 0, bytes: 0 }
    return this.#reservation.hold({ items: items - freed.items, bytes: bytes - freed.bytes })
  }

  beginCommit(): void {
    this.#reservation.beginCommit()
  }

  release(): void {
    this.#reservation.release()
  }
}

export type Reserve = ReturnType<typeof createUploadReservations>

/** Reservations of the quota of a bucket (docs/interface.md Q2), and of what is left of the limits of a token (T10). */
export function createUploadReservations({
  catalog,
}: {
  readonly catalog: Pick<Catalog, 'bucket' | 'findToken'>
}) {
  const ofBuckets = new Reservations((id: BucketId) => readQuota(catalog, id))
  const ofTokens = new Reservations((id: TokenId) => readLimits(catalog, id))
  return ({ bucketId, limits }: Pick<Grant, 'bucketId' | 'limits'>): Reservation => {
    const ofBucket = new OneReservation(ofBuckets, bucketId)
    return limits === null
      ? ofBucket
      : new BothReservations(ofBucket, new OneReservation(ofTokens, limits.id))
  }
}

async function readQuota(catalog: Pick<Catalog, 'bucket'>, id: BucketId): Promise<RequireRoom | null> {
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
}

async function readLimits(catalog: Pick<Catalog, 'findToken'>, id: TokenId): Promise<RequireRoom | null> {
  const limits = (await catalog.findToken(id))?.limits ?? null
  if (limits === null || (limits.maxItems === null && limits.maxBytes === null)) return null
  return (held, more) => {
    const { used, reserved } = limits
    const others = { items: reserved.items + held.items, bytes: reserved.bytes + held.bytes }
    requireWithinLimits(limits, leftOf(limits, { used, reserved: others }), more)
  }
}

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
    // A service token has keys of its own in each bucket.
    const name = `${grant.bucketId} ${key.tokenId} ${key.key}`
    const keyed = all.get(name) ?? { reservation: reserve(grant), requests: 0, holding: Promise.resolve() }
    keyed.requests += 1
    all.set(name, keyed)
    return new KeyedReservation(keyed, {
      findFirst: () => catalog.findKeyed(grant.bucketId, key, now()),
      onLast: () => all.delete(name),
    })
  }
}

/** The reservation of one request with an idempotency key. */
class KeyedReservation implements Reservation {
  readonly #keyed: Keyed
  readonly #findFirst: () => ReturnType<Catalog['findKeyed']>
  readonly #onLast: () => void
  /** The stored request with this key: undefined until it is looked up, null if there is none. */
  #first: Awaited<ReturnType<Catalog['findKeyed']>> | undefined
  #isCommitting = false
  #isReleased = false

  /** `onLast` is called when no other request in progress has the key. */
  constructor(
    keyed: Keyed,
    parts: { readonly findFirst: () => ReturnType<Catalog['findKeyed']>; readonly onLast: () => void },
  ) {
    this.#keyed = keyed
    this.#findFirst = parts.findFirst
    this.#onLast = parts.onLast
  }

  async hold(amount: Amount): Promise<void> {
    const stored = this.#first === undefined ? await this.#find() : this.#first
    if (stored !== null) return requireRepeatable(stored, amount)
    try {
      await this.#inTurn(() => this.#keyed.reservation.hold(amount))
    } catch (error) {
      // Another request with the key may have been stored in the meantime.
      const found = await this.#find()
      if (found === null) throw error
      requireRepeatable(found, amount)
    }
  }

  beginCommit(): void {
    this.#isCommitting = true
    this.#keyed.reservation.beginCommit()
  }

  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#keyed.requests -= 1
    const isLast = this.#keyed.requests === 0
    if (isLast) this.#onLast()
    // After a commit, the items are counted as stored; if it failed, another request reserves again.
    if (isLast || this.#isCommitting) this.#keyed.reservation.release()
  }

  async #find() {
    this.#first = await this.#findFirst()
    return this.#first
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#keyed.holding.then(work)
    this.#keyed.holding = done.catch(() => undefined)
    return done
  }
}

/** Throws Fault `idempotency-key-reused` for a request that has more bytes than the first one with its key. */
function requireRepeatable({ bytes }: { readonly bytes: number | null }, amount: Amount): void {
  if (bytes !== null && amount.bytes > bytes)
    throw new Fault('idempotency-key-reused', 'This Idempotency-Key was used for other files; use a new one.')
}
