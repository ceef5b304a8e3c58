import { createCursors } from '../core/cursors.ts'
import { Fault } from '../core/faults.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { ChangeRows, FeedPosition } from '../storage/catalog/feed/feed.ts'
import type { BucketId } from '../storage/catalog/records.ts'

/** Changes of one read of streams: while their size is unknown, and at most. */
const firstLength = 10
const maxLength = 100
/** Reads of a bucket that are kept. Streams that catch up together are at the same ones; those that are alone need none. */
const keptReads = 4

type FeedParts = Pick<Catalog, 'epoch' | 'knownLocation' | 'readChanges' | 'watchChanges'>

/** The feeds of the buckets, with the cursors that clients receive (docs/interface.md, Feed). */
export class Feed {
  readonly #catalog: FeedParts
  readonly cursors: ChangeCursors
  readonly #followed = new Map<BucketId, SharedReads>()

  constructor({ catalog }: { readonly catalog: FeedParts }) {
    this.#catalog = catalog
    this.cursors = new ChangeCursors(catalog)
  }

  /** Changes after a cursor; from the first one that is kept if it is null. Throws Fault `cursor-malformed` and `cursor-expired`. */
  async read(bucketId: BucketId, after: string | 'now' | null, limit: number): Promise<ChangeRows> {
    const from = after === null ? 'start' : after === 'now' ? after : this.cursors.parse(bucketId, after)
    const rows = await this.#catalog.readChanges(bucketId, from, limit)
    if (rows === null) throw cursorExpired()
    return rows
  }

  /** Calls `onChange` as FeedBell.watch. Followers of a bucket share their reads. */
  follow(bucketId: BucketId, onChange: () => void): FollowedBucket {
    const shared = this.#followed.get(bucketId) ?? this.#begin(bucketId)
    return new FollowedBucket(shared, onChange)
  }

  #begin(bucketId: BucketId): SharedReads {
    const shared = new SharedReads(this.#catalog, bucketId, () => {
      if (this.#followed.get(bucketId) === shared) this.#followed.delete(bucketId)
    })
    this.#followed.set(bucketId, shared)
    return shared
  }

  /**
   * Resolves with changes after a number as soon as there are some, or with none when `signal` is aborted. Calls `verify` at this interval
   * (ms), and before changes that come later are read; rejects with its error. Throws Fault `cursor-expired`.
   */
  async wait(
    bucketId: BucketId,
    after: number,
    options: {
      readonly signal: AbortSignal
      readonly interval: number
      readonly verify: () => Promise<void>
    },
  ): Promise<ChangeRows> {
    const { signal, interval, verify } = options
    let isBehind = true
    let wake = () => {}
    const bucket = this.follow(bucketId, () => {
      isBehind = true
      wake()
    })
    signal.addEventListener('abort', () => wake())
    try {
      for (let rows: ChangeRows = { changes: [], next: after, seen: after, hasMore: false }; ; ) {
        if (isBehind) {
          isBehind = false
          const found = await bucket.read(rows.next)
          if (found === null) throw cursorExpired()
          rows = found
        }
        if (rows.changes.length > 0 || signal.aborted) return rows
        // The wait ends with a change, the interval or the signal. A change during the read needs no wait.
        if (!isBehind) {
          const { promise, resolve } = Promise.withResolvers<void>()
          wake = resolve
          const timer = setTimeout(resolve, interval)
          await promise
          clearTimeout(timer)
        }
        await verify()
      }
    } finally {
      bucket.stop()
    }
  }
}

/** The last reads of a bucket since its last notification, which its followers share. */
class SharedReads {
  readonly #catalog: FeedParts
  readonly #bucketId: BucketId
  /** By the number after which they begin. */
  #reads = new Map<number, Promise<ChangeRows | null>>()
  /** Changes of one read. */
  #length = firstLength
  readonly #followers = new Set<() => void>()
  readonly #stop: () => void

  /** `onEnd` is called when the last follower has left. */
  constructor(catalog: FeedParts, bucketId: BucketId, onEnd: () => void) {
    this.#catalog = catalog
    this.#bucketId = bucketId
    const unwatch = catalog.watchChanges(bucketId, () => {
      // What was read before the notification may be incomplete.
      this.#reads = new Map()
      for (const onChange of this.#followers) onChange()
    })
    this.#stop = () => {
      onEnd()
      unwatch()
    }
  }

  join(listener: () => void): void {
    this.#followers.add(listener)
  }

  leave(listener: () => void): void {
    if (this.#followers.delete(listener) && this.#followers.size === 0) this.#stop()
  }

  /** Lets the following reads have about as many changes of this size as fit into so many bytes. */
  expect(size: number, bytes: number): void {
    this.#length = Math.max(1, Math.min(maxLength, Math.ceil(bytes / size)))
  }

  read(after: number): Promise<ChangeRows | null> {
    const reads = this.#reads
    const known = reads.get(after)
    if (known !== undefined) return known
    const reading = this.#catalog.readChanges(this.#bucketId, after, this.#length)
    reads.set(after, reading)
    for (const earliest of reads.keys()) {
      if (reads.size <= keptReads) break
      reads.delete(earliest)
    }
    reading.catch(() => {
      if (reads.get(after) === reading) reads.delete(after)
    })
    return reading
  }
}

/** A bucket that is followed. */
export class FollowedBucket {
  readonly #shared: SharedReads
  readonly #listener: () => void

  constructor(shared: SharedReads, onChange: () => void) {
    this.#shared = shared
    // A function of its own, because several followers may have one.
    this.#listener = () => onChange()
    shared.join(this.#listener)
  }

  /** As readChanges of storage/catalog/feed/feed.ts. Reads of the same changes that follow each other are one read. */
  read(after: number): Promise<ChangeRows | null> {
    return this.#shared.read(after)
  }

  /** Lets the following reads have about as many changes of this size as fit into so many bytes. */
  expect(size: number, bytes: number): void {
    this.#shared.expect(size, bytes)
  }

  stop(): void {
    this.#shared.leave(this.#listener)
  }
}

const cursorExpired = (): Fault =>
  new Fault(
    'cursor-expired',
    'The feed does not reach back to this cursor. List the items again, and continue with a cursor of since=now that was requested before.',
  )

/** A position of a reader: its number, and what it has seen if that is a later one. */
const positionShape = /^(0|[1-9]\d{0,15})(?:\.([1-9]\d{0,15}))?$/

/** Formats and parses cursors. A cursor is valid for one bucket, until the data are restored, and not for a copy of them elsewhere. */
class ChangeCursors {
  readonly #cursors: ReturnType<typeof createCursors>
  readonly #knownLocation: () => string

  constructor({ epoch, knownLocation }: Pick<Catalog, 'epoch' | 'knownLocation'>) {
    this.#cursors = createCursors(epoch)
    this.#knownLocation = knownLocation
  }

  format(bucketId: BucketId, { number, seen }: FeedPosition): string {
    return this.#cursors.format(
      [bucketId, this.#knownLocation()],
      seen > number ? `${number}.${seen}` : `${number}`,
    )
  }

  /**
   * `source` is the parameter or header that has the cursor. Throws Fault `cursor-malformed`, which names it, and `cursor-expired` for what may be
   * a cursor of the data before a restore.
   */
  parse(bucketId: BucketId, cursor: string, source = 'after'): FeedPosition {
    const found = this.#cursors.parse([bucketId, this.#knownLocation()], cursor)
    const position = positionShape.exec(found?.place ?? '')
    if (found === null || position === null) throw cursorMalformed(source)
    if (!found.isOwn) throw cursorExpired()
    const [, number, seen = number] = position
    return { number: Number(number), seen: Number(seen) }
  }
}

function cursorMalformed(source: string): Fault {
  const detail = `${source} accepts a cursor of an earlier response of the feed, unchanged.`
  return new Fault('cursor-malformed', detail, { parameters: [{ parameter: source, detail }] })
}
