import { dayOf, startOfDay } from '../../core/times.ts'
import { bucketsWithTrash, expiredPlaces, isNotDeleted, tooManyExpired } from './buckets.ts'
import { writesOf } from './declarations.ts'
import { bucketWithTrashColumns, readBucketWithTrash } from './items/trash.ts'
import type { BucketId, BucketWithTrash } from './records.ts'
import {
  all,
  bucketIdOf,
  eachEngine,
  first,
  integer,
  integerOrNull,
  type Query,
  type Row,
  selectColumns,
  text,
  type Work,
  write,
} from './statements.ts'

// The usage of buckets by day (docs/architecture/storage.md, Usage). The row of a bucket has what the changes of one day, its open day, have added and
// removed, so that an upload needs no other statement. The first change on another day moves these counters to the row of their day, also if that
// row exists because the clock was changed. Items and bytes at the end of a day are those of now without the changes of later days, so they are
// exact in any order of days. The rows before the oldest kept day are one row, that of `earlierDay`.

/** Counters of one bucket and day. */
export interface UsageCounts {
  readonly addedItems: number
  readonly addedBytes: number
  readonly removedItems: number
  readonly removedBytes: number
  readonly downloadedBytes: number
  readonly listRequests: number
  readonly downloadRequests: number
  readonly uploadRequests: number
  readonly otherRequests: number
}

type Counter = keyof UsageCounts

/** One day, in days since 1970 (UTC), with the items and bytes at its end. Items are without the trash, bytes with it. */
export interface DayUsage extends UsageCounts {
  readonly day: number
  readonly items: number
  readonly bytes: number
}

/** The usage of one of all buckets. */
export interface BucketUsage {
  readonly id: BucketId
  readonly name: string
  /** When the bucket was deleted; null for a bucket that exists. */
  readonly deletedAt: number | null
  readonly usage: DayUsage
}

/** What a process has counted of one bucket and day. */
export interface CountedRequests
  extends Pick<
    UsageCounts,
    'downloadedBytes' | 'listRequests' | 'downloadRequests' | 'uploadRequests' | 'otherRequests'
  > {
  readonly bucketId: BucketId
  readonly day: number
}

/** The day of the row that has what all days before the kept ones have changed. */
export const earlierDay = 0

/** The columns of changes, which the row of a bucket has for its open day and `bucket_usage` for each earlier one. */
export const changeColumns = {
  addedItems: 'added_items',
  addedBytes: 'added_bytes',
  removedItems: 'removed_items',
  removedBytes: 'removed_bytes',
} as const
/** The columns that only `bucket_usage` has. */
export const requestColumns = {
  downloadedBytes: 'downloaded_bytes',
  listRequests: 'list_requests',
  downloadRequests: 'download_requests',
  uploadRequests: 'upload_requests',
  otherRequests: 'other_requests',
} as const
const counterColumns: Readonly<Record<Counter, string>> = { ...changeColumns, ...requestColumns }
export const counters = Object.keys(counterColumns).filter((name): name is Counter =>
  Object.hasOwn(counterColumns, name),
)

export const noUsage: UsageCounts = {
  ...{ addedItems: 0, addedBytes: 0, removedItems: 0, removedBytes: 0 },
  ...{ downloadedBytes: 0, listRequests: 0, downloadRequests: 0, uploadRequests: 0, otherRequests: 0 },
}

/** Reads `counterColumns`; the first of them has the index `from`. */
export const readCounts = (row: Row, from: number): UsageCounts => ({
  addedItems: integer(row, from),
  addedBytes: integer(row, from + 1),
  removedItems: integer(row, from + 2),
  removedBytes: integer(row, from + 3),
  downloadedBytes: integer(row, from + 4),
  listRequests: integer(row, from + 5),
  downloadRequests: integer(row, from + 6),
  uploadRequests: integer(row, from + 7),
  otherRequests: integer(row, from + 8),
})

const sumOf = (one: UsageCounts, other: UsageCounts): UsageCounts => ({
  addedItems: one.addedItems + other.addedItems,
  addedBytes: one.addedBytes + other.addedBytes,
  removedItems: one.removedItems + other.removedItems,
  removedBytes: one.removedBytes + other.removedBytes,
  downloadedBytes: one.downloadedBytes + other.downloadedBytes,
  listRequests: one.listRequests + other.listRequests,
  downloadRequests: one.downloadRequests + other.downloadRequests,
  uploadRequests: one.uploadRequests + other.uploadRequests,
  otherRequests: one.otherRequests + other.otherRequests,
})

export const changeCounters = Object.values(changeColumns)
export const allCounters = Object.values(counterColumns)

/** Adds the values of a row that exists. */
export const addition = (columns: readonly string[]) =>
  `ON CONFLICT (day, bucket_id) DO UPDATE SET ${columns
    .map((column) => `${column} = bucket_usage.${column} + excluded.${column}`)
    .join(', ')}`

export const isAny = `(${changeCounters.join(' + ')}) <> 0`

const closing = `INSERT INTO bucket_usage (day, bucket_id, ${changeCounters.join(', ')})
  SELECT usage_day, id, ${changeCounters.join(', ')} FROM buckets WHERE id = $1 AND ${isNotDeleted} AND ${isAny} ${addition(changeCounters)}`

const opening = `UPDATE buckets SET usage_day = $2, ${changeCounters.map((column) => `${column} = 0`).join(', ')} WHERE id = $1`

/**
 * Makes another day the open day of a bucket. To be called within the transaction that changes items, before it changes them, with the bucket locked,
 * if its open day is not the day of the transaction.
 */
export function* openUsageDay(id: BucketId, day: number): Work<void> {
  yield* write(closing, id)
  yield* write(opening, id, day)
}

const finalRemoval = `INSERT INTO bucket_usage (day, bucket_id, removed_items, removed_bytes)
  SELECT usage_day, id, total, bytes FROM buckets WHERE id = $1 ${addition(['removed_items', 'removed_bytes'])}`

const deletedInsertion = `INSERT INTO deleted_buckets (id, name, created_at, deleted_at)
  SELECT id, name, created_at, $2::int8 FROM buckets WHERE id = $1`

/**
 * Keeps the usage of a bucket that the transaction deletes after this, under its name. What it has counts as removed now. What its row counts from then
 * on, while it is removed, is no usage.
 */
export function* closeUsage(id: BucketId, now: number): Work<void> {
  yield* openUsageDay(id, dayOf(now))
  yield* write(finalRemoval, id)
  yield* write(deletedInsertion, id, now)
}

const elements = {
  sqlite: 'json_each($1)',
  postgres: 'json_array_elements($1::text::json) AS element (value)',
}

const countedAddition = eachEngine(
  (engine) => `INSERT INTO bucket_usage (day, bucket_id, ${Object.values(requestColumns).join(', ')})
    SELECT ${[0, 1, 2, 3, 4, 5, 6].map((index) => `(value ->> ${index})::int8`).join(', ')} FROM ${elements[engine]} WHERE true
    ${addition(Object.values(requestColumns))}`,
)

/** Adds what a process has counted. Rows of several processes are locked in one order. */
export function* addUsage(counted: readonly CountedRequests[]): Work<undefined> {
  const rows = counted
    .toSorted((one, other) => one.bucketId - other.bucketId || one.day - other.day)
    .map(
      ({ bucketId, day, downloadedBytes, listRequests, downloadRequests, uploadRequests, otherRequests }) => [
        ...[day, bucketId, downloadedBytes],
        ...[listRequests, downloadRequests, uploadRequests, otherRequests],
      ],
    )
  yield* write(countedAddition, JSON.stringify(rows))
}

const oldRows = `SELECT day, bucket_id, ${changeCounters.join(', ')} FROM bucket_usage WHERE day > ${earlierDay} AND day < $1
  ORDER BY day, bucket_id LIMIT $2 FOR UPDATE`

const rowRemoval = eachEngine(
  (engine) => `DELETE FROM bucket_usage WHERE (day, bucket_id) IN
    (SELECT (value ->> 0)::int8, (value ->> 1)::int8 FROM ${elements[engine]})`,
)

const oldAddition = eachEngine(
  (engine) => `INSERT INTO bucket_usage (day, bucket_id, ${changeCounters.join(', ')})
    SELECT ${earlierDay}, ${['(value ->> 1)::int8', ...[2, 3, 4, 5].map((index) => `sum((value ->> ${index})::int8)::int8`)].join(', ')}
    FROM ${elements[engine]} WHERE true GROUP BY 2 ORDER BY 2 ${addition(changeCounters)}`,
)

const forgotten = 'SELECT id FROM deleted_buckets WHERE deleted_at < $1 ORDER BY id LIMIT $2 FOR UPDATE'

/**
 * Removes up to `limit` rows of days before the one of `before`, and adds what they have changed to one row of their bucket; then deleted buckets of which
 * nothing is left. Returns how many rows it has removed.
 */
export function* removeUsage(before: number, limit: number): Work<number> {
  const day = dayOf(before)
  const rows = yield* all((row) => row.map((_, column) => integer(row, column)), oldRows, day, limit)
  if (rows.length > 0) {
    const json = JSON.stringify(rows)
    yield* write(oldAddition, json)
    yield* write(rowRemoval, json)
    return rows.length
  }
  const ids = yield* all((row) => bucketIdOf(row, 0), forgotten, before, limit)
  if (ids.length === 0) return 0
  yield* write('DELETE FROM bucket_usage WHERE bucket_id = ANY ($1::int8[])', ids)
  yield* write('DELETE FROM deleted_buckets WHERE id = ANY ($1::int8[])', ids)
  return ids.length
}

// One statement, so that it is one snapshot: a change that begins another day moves counters between the tables.
const usageRows = `SELECT day, ${allCounters.join(', ')}, 0, 0 FROM bucket_usage WHERE bucket_id = $1 AND day >= $2
  UNION ALL SELECT usage_day, ${changeCounters.join(', ')}, 0, 0, 0, 0, 0, total, bytes FROM buckets WHERE id = $1`

const readUsageRow = (row: Row) => ({
  day: integer(row, 0),
  counts: readCounts(row, 1),
  items: integer(row, 1 + counters.length),
  bytes: integer(row, 2 + counters.length),
})

/** A state of a bucket, and the days that have changed it. */
interface UsageRows {
  readonly items: number
  readonly bytes: number
  readonly days: ReadonlyMap<number, UsageCounts>
}

/** Days after `today` count as today: the clock was ahead. */
function collect(rows: readonly ReturnType<typeof readUsageRow>[], today: number): UsageRows {
  const days = new Map<number, UsageCounts>()
  let [items, bytes] = [0, 0]
  for (const row of rows) {
    const day = Math.min(row.day, today)
    days.set(day, sumOf(days.get(day) ?? noUsage, row.counts))
    items += row.items
    bytes += row.bytes
  }
  return { items, bytes, days }
}

/** The usage of each day from `from` to `to`, which is today at the latest, the earliest first. */
function usageOfDays({ items, bytes, days }: UsageRows, from: number, to: number, today: number): DayUsage[] {
  const found: DayUsage[] = []
  const state = { items, bytes }
  for (let day = today; day >= from; day -= 1) {
    const counts = days.get(day) ?? noUsage
    if (day <= to) found.push({ day, ...state, ...counts })
    state.items -= counts.addedItems - counts.removedItems
    state.bytes -= counts.addedBytes - counts.removedBytes
  }
  return found.reverse()
}

/**
 * The usage of a bucket on each day from `from` to `to`, which are days since 1970 and not after today. Days before the kept ones have nothing of
 * their own.
 */
export function* findUsage(id: BucketId, from: number, to: number, now = Date.now()): Query<DayUsage[]> {
  const rows = yield* all(readUsageRow, usageRows, id, from)
  const today = Math.max(dayOf(now), to)
  return usageOfDays(collect(rows, today), from, to, today)
}

const openTodayPlace = expiredPlaces.expiredTrashBytes + 1
const todayPlace = openTodayPlace + 3 + changeCounters.length

// The rows of today are few pages, which stay in memory.
const bucketToday = eachEngine(
  (
    engine,
  ) => `SELECT ${bucketWithTrashColumns(engine)}, total, bytes, usage_day, ${changeCounters.map((column) => `buckets.${column}`).join(', ')},
      ${allCounters.map((column) => `coalesce(bucket_usage.${column}, 0)`).join(', ')}
    FROM ${bucketsWithTrash} LEFT JOIN bucket_usage ON bucket_usage.day = $3 AND bucket_usage.bucket_id = buckets.id WHERE id = $1`,
)

/** As findBucketWithTrash, with the usage of today: without what was counted on later days. */
export function* findBucketWithUsage(
  id: BucketId,
  now = Date.now(),
): Query<{ readonly bucket: BucketWithTrash; readonly usage: DayUsage } | null> {
  const today = dayOf(now)
  const found = yield* first(
    (row) => ({
      ...readBucketWithTrash(row),
      usage: {
        day: today,
        items: integer(row, openTodayPlace),
        bytes: integer(row, openTodayPlace + 1),
        ...todayOf(row, today),
      },
    }),
    bucketToday,
    ...[id, now, today],
  )
  if (found === null) return null
  if (found.isBusy) throw tooManyExpired()
  return found
}

function todayOf(row: Row, today: number): UsageCounts {
  const stored = readCounts(row, todayPlace)
  return integer(row, openTodayPlace + 2) === today
    ? sumOf(stored, readChanges(row, openTodayPlace + 3))
    : stored
}

/** The place of a bucket in the list of all buckets by name. */
export interface BucketPlace {
  readonly name: string
  readonly id: number
}

const listed = selectColumns({
  ...{ id: 'listed.id', name: 'listed.name', deletedAt: 'listed.deleted_at' },
  ...{ day: 'listed.usage_day', total: 'listed.total', bytes: 'listed.bytes' },
})
const openPlace = listed.end
const ofDay = openPlace + changeCounters.length
const laterPlace = ofDay + counters.length

const sum = (column: string) => `coalesce(sum(bucket_usage.${column}), 0)::int8`

/** What later days have added and not removed, from the index. */
const later = (what: 'items' | 'bytes') =>
  `(SELECT coalesce(sum(added_${what} - removed_${what}), 0)::int8 FROM bucket_usage AS later
    WHERE later.bucket_id = listed.id AND later.day > $4)`

/** Whether a bucket has a stored usage of a day up to `$4`. */
const hasUsage = (table: string) =>
  `EXISTS (SELECT 1 FROM bucket_usage AS earlier WHERE earlier.bucket_id = ${table}.id AND earlier.day <= $4)`

/** A page of a table with names of buckets. The clock may have been ahead when a bucket was created: then its usage shows that it existed. */
const page = (source: string, condition: string, hasUsage: string) =>
  `SELECT * FROM (SELECT ${source} WHERE ${condition} AND (created_at <= $6 OR ${hasUsage}) AND (name, id) > ($1, $2)
    ORDER BY name, id LIMIT $7) AS page`

/** Of buckets after a place that existed on the day `$3`, up to `$4`; `$5` and `$6` are the first milliseconds of `$3` and the last ones of `$4`. */
const listRows = `SELECT ${listed.text}, ${changeCounters.map((column) => `listed.${column}`).join(', ')},
    ${allCounters.map(sum).join(', ')}, ${later('items')}, ${later('bytes')}
  FROM (
    ${page(
      `id, name, NULL::int8 AS deleted_at, usage_day, total, bytes, ${changeCounters.join(', ')} FROM buckets`,
      `id > 0 AND ${isNotDeleted}`,
      `usage_day <= $4 AND ${isAny} OR ${hasUsage('buckets')}`,
    )}
    UNION ALL
    ${page(
      'id, name, deleted_at, 0, 0, 0, 0, 0, 0, 0 FROM deleted_buckets',
      'deleted_at >= $5',
      hasUsage('deleted_buckets'),
    )}
    ORDER BY name, id LIMIT $7
  ) AS listed LEFT JOIN bucket_usage ON bucket_usage.bucket_id = listed.id AND day BETWEEN $3 AND $4
  GROUP BY listed.id, listed.name, listed.deleted_at, listed.usage_day, listed.total, listed.bytes,
    ${changeCounters.map((column) => `listed.${column}`).join(', ')}
  ORDER BY listed.name, listed.id`

/**
 * The usage of all buckets on a day, which is not after today, by name: up to `limit` of those after a place. Deleted buckets are left out before the
 * day on which they were created and after the one on which they were deleted.
 */
export const listUsage = (
  day: number,
  after: BucketPlace | null,
  limit: number,
  now = Date.now(),
): Query<BucketUsage[]> => {
  // Days after today count as today.
  const [last, end] =
    day >= dayOf(now) ? [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER] : [day, startOfDay(day + 1) - 1]
  return all(
    (row) => readListed(row, day, last),
    listRows,
    ...[after?.name ?? '', after?.id ?? 0, day, last],
    ...[startOfDay(day), end, limit],
  )
}

const readChanges = (row: Row, from: number): UsageCounts => ({
  ...noUsage,
  addedItems: integer(row, from),
  addedBytes: integer(row, from + 1),
  removedItems: integer(row, from + 2),
  removedBytes: integer(row, from + 3),
})

function readListed(row: Row, day: number, last: number): BucketUsage {
  const openDay = integer(row, listed.at.day)
  const open = readChanges(row, openPlace)
  const stored = readCounts(row, ofDay)
  const after = openDay > last ? open : noUsage
  const counts = openDay >= day && openDay <= last ? sumOf(stored, open) : stored
  return {
    id: bucketIdOf(row, listed.at.id),
    name: text(row, listed.at.name),
    deletedAt: integerOrNull(row, listed.at.deletedAt),
    usage: {
      day,
      items: integer(row, listed.at.total) - integer(row, laterPlace) - after.addedItems + after.removedItems,
      bytes:
        integer(row, listed.at.bytes) - integer(row, laterPlace + 1) - after.addedBytes + after.removedBytes,
      ...counts,
    },
  }
}

export const reads = { findUsage, findBucketWithUsage, listUsage }

export const writes = writesOf({ addUsage, removeUsage })
