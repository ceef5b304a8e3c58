import { createCursors } from '../core/cursors.ts'
import { Fault } from '../core/faults.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { ChangeRows } from '../storage/catalog/feed.ts'
import type { BucketId } from '../storage/catalog/records.ts'

export type Feed = ReturnType<typeof openFeed>

/** A bucket that is followed. */
export interface FollowedBucket {
  /** As FeedCatalog.readChanges. Reads of the same changes that follow each other are one read. */
  read(after: number): Promise<ChangeRows | null>
  /** Lets the following reads have about as many changes of this size as fit into so many bytes. */
  expect(size: number, bytes: number): void
  stop(): void
}

/** The last reads of a bucket since its last notification, by the number after which they begin. */
interface SharedReads {
  reads: Map<number, Promise<ChangeRows | null>>
  /** Changes of one read. */
  length: number
  readonly followers: Set<() => void>
  readonly stop: () => void
}

/** Changes of one read of streams: while their size is unknown, and at most. */
const firstLength = 10
const maxLength = 100
/** Reads of a bucket that are kept. Streams that catch up together are at the same ones; those that are alone need none. */
const keptReads = 4

/** The feeds of the buckets, with the cursors that clients receive (docs/interface.md, Feed). */
export function openFeed({
  catalog,
}: {
  readonly catalog: Pick<Catalog, 'epoch' | 'readChanges' | 'watchChanges'>
}) {
  const cursors = createChangeCursors(catalog.epoch)
  const followed = new Map<BucketId, SharedReads>()

  function open(bucketId: BucketId): SharedReads {
    const followers = new Set<() => void>()
    const stop = catalog.watchChanges(bucketId, () => {
      // What was read before the notification may be incomplete.
      shared.reads = new Map()
      for (const onChange of followers) onChange()
    })
    const shared: SharedReads = { reads: new Map(), length: firstLength, followers, stop }
    followed.set(bucketId, shared)
    return shared
  }

  function readShared(bucketId: BucketId, shared: SharedReads, after: number): Promise<ChangeRows | null> {
    const { reads } = shared
    const known = reads.get(after)
    if (known !== undefined) return known
    const reading = catalog.readChanges(bucketId, after, shared.length)
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

  /** Calls `onChange` as FeedCatalog.watchChanges. Followers of a bucket share their reads. */
  function follow(bucketId: BucketId, onChange: () => void): FollowedBucket {
    const shared = followed.get(bucketId) ?? open(bucketId)
    const listener = () => onChange()
    shared.followers.add(listener)
    return {
      read: (after) => readShared(bucketId, shared, after),
      expect(size, bytes) {
        shared.length = Math.max(1, Math.min(maxLength, Math.ceil(bytes / size)))
      },
      stop() {
        shared.followers.delete(listener)
        if (shared.followers.size > 0 || followed.get(bucketId) !== shared) return
        followed.delete(bucketId)
        shared.stop()
      },
    }
  }

  return {
    cursors,

    /** Changes after a cursor; from the first one that is kept if it is null. Throws Fault `cursor-malformed` and `cursor-expired`. */
    async read(bucketId: BucketId, after: string | 'now' | null, limit: number): Promise<ChangeRows> {
      const from = after === null ? 'start' : after === 'now' ? after : cursors.parse(bucketId, after)
      const rows = await catalog.readChanges(bucketId, from, limit)
      if (rows === null) throw cursorExpired()
      return rows
    },

    follow,

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
      const bucket = follow(bucketId, () => {
        isBehind = true
        wake()
      })
      signal.addEventListener('abort', () => wake())
      try {
        for (let rows: ChangeRows = { changes: [], next: after, hasMore: false }; ; ) {
          if (isBehind) {
            isBehind = false
            const found = await bucket.read(rows.next)
            if (found === null) throw cursorExpired()
            rows = found
          }
          if (rows.changes.length > 0 || signal.aborted) return rows
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
    },
  }
}

const cursorExpired = (): Fault =>
  new Fault(
    'cursor-expired',
    'The feed does not reach back to this cursor. List the items again, and continue with a cursor of since=now that was requested before.',
  )

const numberShape = /^(0|[1-9]\d{0,15})$/

/** Formats and parses cursors. A cursor is valid for one bucket, until the data are restored. */
function createChangeCursors(epoch: string) {
  const cursors = createCursors(epoch)
  return {
    format: (bucketId: BucketId, number: number) => cursors.format([bucketId], `${number}`),
    /**
     * `source` is the parameter or header that has the cursor. Throws Fault `cursor-malformed`, which names it, and `cursor-expired` for what may be
     * a cursor of the data before a restore.
     */
    parse(bucketId: BucketId, cursor: string, source = 'after'): number {
      const found = cursors.parse([bucketId], cursor)
      if (found === null || !numberShape.test(found.place)) throw cursorMalformed(source)
      if (!found.isOwn) throw cursorExpired()
      return Number(found.place)
    },
  }
}

function cursorMalformed(source: string): Fault {
  const detail = `${source} accepts a cursor of an earlier response of the feed, unchanged.`
  return new Fault('cursor-malformed', detail, { parameters: [{ parameter: source, detail }] })
}
