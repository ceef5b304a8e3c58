import { bucketDeleted } from '../../../core/faults.ts'
import { expiredColumn } from '../buckets.ts'
import type { BucketId, ItemDetails, ItemPlace, ItemRow, ItemRows } from '../records.ts'
import { eachEngine, first, integer, type Query } from '../statements.ts'
import type { ItemPredicate } from './item-filters.ts'

// Every list and search of items is a scan: a source reads the entries of one index in an order, and a filter compares their items.

/** What a scan reads at most. At a bound it ends early, and its rows say where. */
export interface Bounds {
  /** Entries of an index: items, or places of items. */
  readonly rows: number
  /** Sequence numbers whose names are compared, unless the bucket has no more items than these. */
  readonly numbers: number
  /** Whether a bucket with no more items than `numbers` has this bound too. */
  readonly boundsFewItems?: boolean
  /** Rows of names that one statement compares on PostgreSQL. */
  readonly comparedRows?: number
  /** Characters of names that are compared, one at a time. */
  readonly comparisons: number
}

/** A bucket in the snapshot of a scan. */
interface ScannedBucket {
  readonly revision: number
  readonly expired: number
  readonly total: number
  readonly nextSeq: number
  /** The time of the scan. */
  readonly now: number
}

export interface PartRequest {
  /** The most entries that one statement reads. */
  readonly count: number
  /** Items after which the part may end. */
  readonly wanted: number
  /** What the scan may still read. */
  readonly left: Bounds
}

/** Consecutive entries of a source. */
export interface Part {
  /** Their items in the order of the source; expired ones may be among them. */
  readonly rows: readonly ItemRow[]
  /** The place of the last entry; null if none follows. */
  readonly last: ItemPlace | null
  readonly cost: Partial<Bounds>
  /** Whether the part ended because of `count`, so that the next one should be longer. */
  readonly isFull: boolean
}

/** Reads the entries after a place; null for the first ones. */
type ReadPart = (after: ItemPlace | null, request: PartRequest) => Query<Part>

/** Reads from an index, in an order. */
export interface Source {
  readonly bucketId: BucketId
  /** Filters that all items of the source pass. The others are compared afterwards. */
  readonly compared: ReadonlySet<string>
  /** Whether it may read many entries for one item. */
  readonly isSparse: boolean
  /** Entries that are read together, at first and at most, if nothing is compared afterwards; left out for those of other scans. */
  readonly batches?: readonly [first: number, largest: number]
  /** Prepares the reads of one scan, with statements of its own if it needs some. */
  open(bucket: ScannedBucket, bounds: Bounds): ReadPart | Query<ReadPart>
  /** The place before the first item that follows a place; null if there is none. Left out where each entry is an item. */
  next?(after: ItemPlace): Query<ItemPlace | null>
}

/** Entries that are read together at most. It takes some milliseconds. */
const largestBatch = 1_024

const isLive = ({ expiresAt }: ItemDetails, now: number): boolean => expiresAt == null || expiresAt > now

/**
 * Finds up to `limit` items that pass the filter, in the order of the source, as Catalog.items; to be run in one snapshot. The filter is null if the
 * source compares all filters.
 */
export function* scan(
  source: Source,
  filter: ItemPredicate | null,
  after: ItemPlace | null,
  limit: number,
  bounds: Bounds,
): Query<ItemRows> {
  const bucket = yield* readBucket(source.bucketId)
  const { revision, expired, now } = bucket
  const opened = source.open(bucket, bounds)
  const read = typeof opened === 'function' ? opened : yield* opened
  const [firstBatch, largest] = (filter === null && source.batches) || [limit, largestBatch]
  const rows: ItemRow[] = []
  let place = after
  let left = bounds
  for (let batch = Math.min(firstBatch, largest); ; ) {
    const count = Math.min(batch, left.rows)
    const wanted = filter === null ? limit - rows.length : count
    const part = yield* read(place, { count, wanted, left })
    for (const row of part.rows)
      if (rows.length < limit && isLive(row.item, now) && (filter === null || filter(row.item)))
        rows.push(row)
    if (rows.length === limit || part.last === null) return { revision, expired, rows, examined: null }
    place = part.last
    left = subtract(left, part.cost)
    if (Math.min(left.rows, left.numbers, left.comparisons) <= 0) {
      const examined = source.next === undefined ? place : yield* source.next(place)
      return { revision, expired, rows, examined }
    }
    if (part.isFull) batch = Math.min(batch * 4, largest)
  }
}

const subtract = (left: Bounds, { rows = 0, numbers = 0, comparisons = 0 }: Partial<Bounds>): Bounds => ({
  rows: left.rows - rows,
  numbers: left.numbers - numbers,
  comparisons: left.comparisons - comparisons,
})

const bucketState = eachEngine(
  (engine) => `SELECT revision, ${expiredColumn(engine, '$2')}, total, next_seq FROM buckets WHERE id = $1`,
)

/** Throws Fault `bucket-unknown` if there is no such bucket. */
function* readBucket(bucketId: BucketId): Query<ScannedBucket> {
  const now = Date.now()
  const bucket = yield* first(
    (row) => ({
      revision: integer(row, 0),
      expired: integer(row, 1),
      total: integer(row, 2),
      nextSeq: integer(row, 3),
      now,
    }),
    bucketState,
    ...[bucketId, now],
  )
  if (bucket === null) throw bucketDeleted()
  return bucket
}
