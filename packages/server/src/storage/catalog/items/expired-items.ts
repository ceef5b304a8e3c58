import { indexOf, defaultShape as shape, slotOf, topLevel } from '../buckets.ts'
import type { BucketId } from '../records.ts'
import {
  all,
  bytes,
  type EngineName,
  eachEngine,
  first,
  integer,
  integerOrNull,
  type Query,
  type Row,
  text,
  type Work,
  write,
} from '../statements.ts'

// Expired items stay in the rows of their bucket until they are removed, and reads leave them out. Where many expire at once, a read would pass by each
// of them. So they are counted first, which takes much less time than their removal: the row of the bucket has their number and bytes, and the
// place (expiry and number) up to which they are counted. `expired_counts` has how many of them are in each block of a level of the rank tree. What it
// has can be derived from the rows, so it can be discarded and counted again at any time.

/** A place in the order in which the items of a bucket expire. */
interface CountedPlace {
  readonly expiry: number
  readonly seq: number
}

interface ExpiringRow extends CountedPlace {
  readonly size: number
}

/** Items and their bytes. */
interface Amount {
  readonly items: number
  readonly bytes: number
}

const nothing: Amount = { items: 0, bytes: 0 }

/** Enough levels for every safe number, so that a bucket that grows has all of its counters. */
const levels = topLevel(shape, Number.MAX_SAFE_INTEGER)

/** How many numbers one counter of a level covers. */
const widthOf = (level: number): number => shape.leaf * shape.fanOut ** (level - 1)

const isCounted = (expiry: number, seq: number, to: CountedPlace): boolean =>
  expiry < to.expiry || (expiry === to.expiry && seq <= to.seq)

/** True for the rows of `items` that are not counted as expired, of a bucket whose place is in two parameters. */
const isUncounted = (expiry: string, seq: string): string =>
  `(item_expires_at IS NULL OR (item_expires_at, seq) > (${expiry}, ${seq}))`

/** Items that one step counts. It takes some milliseconds. */
const itemsPerStep = 10_000

const uncountedRows = eachEngine(
  (
    engine,
  ) => `SELECT item_expires_at, seq, size FROM items ${engine === 'sqlite' ? 'INDEXED BY items_item_expiry' : ''}
    WHERE bucket_id = $1 AND item_expires_at IS NOT NULL AND item_expires_at <= $2 AND (item_expires_at, seq) > ($3, $4)
    ORDER BY item_expires_at, seq LIMIT $5`,
)

/** What is left of the expired items of a bucket and its trash after a step of their removal. */
export interface ExpiredRest {
  /** Items that the step has counted. While it is not 0, others may follow. */
  readonly counted: number
  /** Items that are counted and not removed yet. */
  readonly waiting: number
}

/** Counts some of the items of a bucket and its trash that have expired at `now`, if there may be many. The row of the bucket must be locked. */
export function* countRest(bucketId: BucketId, now: number, mayBeMany: boolean): Work<ExpiredRest> {
  let counted = 0
  if (mayBeMany) for (const id of [bucketId, -bucketId as BucketId]) counted += yield* countExpired(id, now)
  const waiting = yield* first(
    (row) => integer(row, 0),
    'SELECT coalesce(sum(counted_items), 0)::int8 FROM buckets WHERE id IN ($1, -$1::int8)',
    bucketId,
  )
  return { counted, waiting: waiting ?? 0 }
}

/** Counts some items of a bucket or a trash that have expired at `now`. Returns how many. */
function* countExpired(id: BucketId, now: number): Work<number> {
  const place = yield* first(
    (row) => ({ expiry: integer(row, 0), seq: integer(row, 1) }),
    'SELECT counted_expiry, counted_seq FROM buckets WHERE id = $1',
    id,
  )
  if (place === null) return 0
  const rows = yield* all(
    (row) => ({ expiry: integer(row, 0), seq: integer(row, 1), size: integer(row, 2) }),
    uncountedRows,
    ...[id, now, place.expiry, place.seq, itemsPerStep],
  )
  const last = rows.at(-1)
  if (last === undefined) return 0
  yield* changeCounts(id, rows, 1)
  yield* write(
    'UPDATE buckets SET counted_expiry = $2, counted_seq = $3 WHERE id = $1',
    id,
    last.expiry,
    last.seq,
  )
  return rows.length
}

const elements = {
  sqlite: 'json_each($2)',
  postgres: 'json_array_elements($2::text::json) AS element (value)',
}

const counterChange = eachEngine(
  (engine) => `INSERT INTO expired_counts (bucket_id, level, slot, items)
    SELECT $1::int8, (value ->> 0)::int4, (value ->> 1)::int8, (value ->> 2)::int8 FROM ${elements[engine]} WHERE true
    ON CONFLICT (bucket_id, level, slot) DO UPDATE SET items = expired_counts.items + excluded.items`,
)

const emptyCounters = eachEngine(
  (engine) => `DELETE FROM expired_counts WHERE bucket_id = $1
    AND (level, slot) IN (SELECT (value ->> 0)::int4, (value ->> 1)::int8 FROM ${elements[engine]}) AND items = 0`,
)

/** Level, number and change of each counter. */
function counterChanges(rows: readonly ExpiringRow[], sign: 1 | -1): number[][] {
  return Array.from({ length: levels }, (_, index) => index + 1).flatMap((level) => {
    const counters = new Map<number, number>()
    for (const { seq } of rows) {
      const slot = Math.floor(seq / widthOf(level))
      counters.set(slot, (counters.get(slot) ?? 0) + sign)
    }
    return [...counters].map(([slot, items]) => [level, slot, items])
  })
}

/** Adds rows to the counts of a bucket, or removes them. */
function* changeCounts(id: BucketId, rows: readonly ExpiringRow[], sign: 1 | -1): Work<Amount> {
  const changes = JSON.stringify(counterChanges(rows, sign))
  yield* write(counterChange, id, changes)
  if (sign < 0) yield* write(emptyCounters, id, changes)
  const amount = { items: rows.length, bytes: rows.reduce((sum, { size }) => sum + size, 0) }
  yield* write(
    'UPDATE buckets SET counted_items = counted_items + $2, counted_bytes = counted_bytes + $3 WHERE id = $1',
    ...[id, sign * amount.items, sign * amount.bytes],
  )
  return amount
}

/** A row of `items` that leaves its bucket or trash. */
export interface LeavingRow {
  readonly seq: number
  readonly size: number
  /** Null for an item that does not expire. */
  readonly expiry: number | null
}

/** Removes rows that leave a bucket or a trash from its counts. Returns what was counted of them. */
export function* leaveCounts(id: BucketId, leaving: readonly LeavingRow[]): Work<Amount> {
  const expiring = leaving.flatMap(({ seq, size, expiry }) =>
    expiry === null ? [] : [{ seq, size, expiry }],
  )
  if (expiring.length === 0) return nothing
  const place = yield* first(
    (row) => ({ expiry: integer(row, 0), seq: integer(row, 1) }),
    'SELECT counted_expiry, counted_seq FROM buckets WHERE id = $1 AND counted_items > 0',
    id,
  )
  const counted = place === null ? [] : expiring.filter(({ expiry, seq }) => isCounted(expiry, seq, place))
  return counted.length === 0 ? nothing : yield* changeCounts(id, counted, -1)
}

/**
 * Discards the counts of a bucket or a trash, to which items are added whose places are counted already: the clock was set back, or a request
 * was repeated whose items have expired since. The next step counts all.
 */
export function* enterCounts(id: BucketId, expiries: readonly (number | null | undefined)[]): Work<void> {
  const earliest = expiries.reduce<number>(
    (least, expiry) => Math.min(least, expiry ?? least),
    Number.MAX_SAFE_INTEGER,
  )
  if (earliest === Number.MAX_SAFE_INTEGER) return
  const sql = 'SELECT 1 FROM buckets WHERE id = $1 AND counted_expiry >= $2'
  if ((yield* first(() => true, sql, id, earliest)) !== null) yield* resetCounts(id)
}

export function* resetCounts(id: BucketId): Work<void> {
  yield* write('DELETE FROM expired_counts WHERE bucket_id = $1', id)
  yield* write(
    `UPDATE buckets SET counted_expiry = -1, counted_seq = -1, counted_items = 0, counted_bytes = 0
    WHERE id = $1 AND (counted_expiry <> -1 OR counted_items <> 0 OR counted_bytes <> 0)`,
    id,
  )
}

// As texts: damaged ones may be too large for a number.
const storedCounts = `SELECT CAST(counted_items AS text), CAST(counted_bytes AS text),
    (SELECT CAST(coalesce(sum(items), 0)::int8 AS text) FROM expired_counts WHERE bucket_id = $1 AND level = 1),
    CAST(count(items.seq) AS text), CAST(coalesce(sum(items.size), 0)::int8 AS text)
  FROM buckets LEFT JOIN items ON items.bucket_id = buckets.id AND item_expires_at IS NOT NULL
    AND (item_expires_at, items.seq) <= (counted_expiry, counted_seq)
  WHERE buckets.id = $1 GROUP BY counted_items, counted_bytes`

/** Why the counts of a bucket or a trash do not match its rows; null if they do. */
export function* wrongCounts(id: BucketId): Query<string | null> {
  const [row] = yield* all((row) => row.map((_, column) => text(row, column)), storedCounts, id)
  const [items, size, ofBlocks, foundItems, foundSize] = row ?? []
  if (items === foundItems && items === ofBlocks && size === foundSize) return null
  return `${items} expired items of ${size} bytes are counted, and ${ofBlocks} in blocks; the rows are ${foundItems} items of ${foundSize} bytes`
}

/** The node of a level, as each engine stores it. */
const nodeRow = {
  sqlite: 'SELECT counts FROM ranks WHERE bucket_id = $1 AND level = $2 AND slot = $3',
  postgres: 'SELECT sums::text FROM ranks WHERE bucket_id = $1 AND level = $2 AND slot = $3',
}

const readNode: Readonly<Record<EngineName, (row: Row) => number[]>> = {
  sqlite(row) {
    const stored = bytes(row, 0)
    const view = new DataView(stored.buffer, stored.byteOffset, stored.byteLength)
    return Array.from({ length: shape.fanOut }, (_, index) => view.getUint32(index * 4, true))
  },
  postgres(row) {
    const sums = text(row, 0).slice(1, -1).split(',').map(Number)
    return sums.map((sum, index) => sum - (sums[index - 1] ?? 0))
  },
}

/** A bucket with counted items, as one snapshot has it. */
interface CountedBucket {
  readonly id: BucketId
  readonly nextSeq: number
  readonly place: CountedPlace
  /** Items that are not counted as expired. */
  readonly rest: number
}

/** The items under each child of a node that are not counted. */
function* restOf(id: BucketId, level: number, slot: number, engine: EngineName): Query<number[]> {
  const counts = (yield* first(readNode[engine], nodeRow, id, level, slot)) ?? []
  const expired = yield* all(
    (row) => ({ index: integer(row, 0) - slot * shape.fanOut, items: integer(row, 1) }),
    'SELECT slot, items FROM expired_counts WHERE bucket_id = $1 AND level = $2 AND slot >= $3 AND slot < $4',
    ...[id, level, slot * shape.fanOut, (slot + 1) * shape.fanOut],
  )
  for (const { index, items } of expired) counts[index] = (counts[index] ?? 0) - items
  return counts
}

/** The start of the block of an item among those that are not counted, from 0, and its position among them in this block. */
function* locate(
  { id, nextSeq }: CountedBucket,
  rank: number,
  engine: EngineName,
): Query<{ readonly start: number; readonly skip: number }> {
  let [slot, skip] = [0, rank]
  for (let level = topLevel(shape, nextSeq); level > 0; level -= 1) {
    const counts = yield* restOf(id, level, slot, engine)
    const index = counts.findIndex((count) => {
      if (skip < count) return true
      skip -= count
      return false
    })
    if (index < 0) throw new RangeError(`the rank counters of bucket ${id} do not reach its total`)
    slot = slot * shape.fanOut + index
  }
  return { start: slot * shape.leaf, skip }
}

const restInBlock = `SELECT count(*) FROM items WHERE bucket_id = $1 AND seq >= $2 AND seq < $3 AND ${isUncounted('$4', '$5')}`

/** How many live items of a bucket have a lower number. */
function* positionOf(bucket: CountedBucket, seq: number, now: number, engine: EngineName): Query<number> {
  const { id, nextSeq, place, rest } = bucket
  if (seq >= nextSeq) seq = nextSeq
  let rank = 0
  if (seq === nextSeq) rank = rest
  else {
    for (let level = topLevel(shape, nextSeq); level > 0; level -= 1) {
      const slot = slotOf(shape, level, seq)
      const counts = yield* restOf(id, level, slot, engine)
      for (const count of counts.slice(0, indexOf(shape, level, seq))) rank += count
    }
    const block = [id, seq - (seq % shape.leaf), seq, place.expiry, place.seq]
    rank += (yield* first((row) => integer(row, 0), restInBlock, ...block)) ?? 0
  }
  const values = [id, now, place.expiry, place.seq, seq]
  return rank - ((yield* first((row) => integer(row, 0), uncountedBefore, ...values)) ?? 0)
}

const uncountedBefore = eachEngine(
  (engine) => `SELECT count(*) FROM items ${engine === 'sqlite' ? 'INDEXED BY items_item_expiry' : ''}
    WHERE bucket_id = $1 AND item_expires_at IS NOT NULL AND item_expires_at <= $2 AND (item_expires_at, seq) > ($3, $4) AND seq < $5`,
)

const seqInBlock = `SELECT seq FROM items WHERE bucket_id = $1 AND seq >= $2 AND ${isUncounted('$3', '$4')}
  ORDER BY seq LIMIT 1 OFFSET $5`

/**
 * The rank among the items that are not counted at which the live item with this position is, or an expired one before it: as many of them
 * precede it as it has uncounted expired ones before it.
 */
function* rankOf(bucket: CountedBucket, position: number, now: number, engine: EngineName): Query<number> {
  const { id, place, rest } = bucket
  let rank = position
  while (rank < rest) {
    const { start, skip } = yield* locate(bucket, rank, engine)
    const seq = yield* first((row) => integer(row, 0), seqInBlock, id, start, place.expiry, place.seq, skip)
    const values = [id, now, place.expiry, place.seq, seq ?? start]
    const preceding = (yield* first((row) => integer(row, 0), uncountedBefore, ...values)) ?? 0
    if (position + preceding === rank) return rank
    rank = position + preceding
  }
  return rank
}

const countedState =
  'SELECT next_seq, counted_expiry, counted_seq, total - counted_items FROM buckets WHERE id = $1 AND counted_items > 0'

/** Null if no items of the bucket are counted. */
const findCounted = (id: BucketId): Query<CountedBucket | null> =>
  first(
    (row) => ({
      id,
      nextSeq: integer(row, 0),
      place: { expiry: integer(row, 1), seq: integer(row, 2) },
      rest: integer(row, 3),
    }),
    countedState,
    id,
  )

/**
 * Reads up to `limit` live items of a bucket in the order of uploads, from this position among them, as `columns` of their rows. Each part takes one read
 * for each level of the ranks, and passes by the items of one block. Null if no items of the bucket are counted. To be run in one snapshot.
 */
export function* readFromPosition<T>(
  engine: EngineName,
  id: BucketId,
  position: number,
  limit: number,
  now: number,
  columns: string,
  read: (row: Row) => T,
): Query<T[] | null> {
  const bucket = yield* findCounted(id)
  if (bucket === null) return null
  if (limit === 0) return []
  const { expiry, seq } = bucket.place
  const found: T[] = []
  let rank = yield* rankOf(bucket, position, now, engine)
  while (found.length < limit && rank < bucket.rest) {
    const { start, skip } = yield* locate(bucket, rank, engine)
    const rows = yield* all(
      (row) => row,
      `SELECT item_expires_at, ${columns} FROM items WHERE bucket_id = $1 AND seq >= $2 AND seq < $3 AND ${isUncounted('$4', '$5')} ORDER BY seq`,
      ...[id, start, start + shape.leaf, expiry, seq],
    )
    const following = rows.slice(skip)
    if (following.length === 0)
      throw new RangeError(`the rank counters of bucket ${id} do not match its items`)
    rank += following.length
    for (const row of following) {
      const expiresAt = integerOrNull(row, 0)
      if (expiresAt === null || expiresAt > now) found.push(read(row.slice(1)))
    }
  }
  return found.slice(0, limit)
}

/**
 * Reads up to `limit` live items of a bucket as readFromPosition, in the order of uploads or the reverse, those that follow a number; null for the first
 * ones. To be run in one snapshot.
 */
export function* readAfterNumber<T>(
  engine: EngineName,
  id: BucketId,
  isOldest: boolean,
  after: number | null,
  limit: number,
  now: number,
  columns: string,
  read: (row: Row) => T,
): Query<T[] | null> {
  const bucket = yield* findCounted(id)
  if (bucket === null) return null
  if (isOldest) {
    const from = after === null ? 0 : yield* positionOf(bucket, after + 1, now, engine)
    return yield* readFromPosition(engine, id, from, limit, now, columns, read)
  }
  const end = yield* positionOf(bucket, after ?? bucket.nextSeq, now, engine)
  const from = Math.max(0, end - limit)
  return (yield* readFromPosition(engine, id, from, end - from, now, columns, read))?.reverse() ?? null
}
