import { bucketDeleted, Fault } from '../../core/faults.ts'
import { globPattern, linePattern, matchingLines, nameSlot, namesPerRow } from '../../core/names.ts'
import type { ItemOrder } from '../../core/queries.ts'
import { expiredColumn } from './buckets.ts'
import { kindExpression, kindNumber } from './item-kinds.ts'
import { isLive, itemColumnCount, itemColumns, readItemRow } from './items.ts'
import type { BucketId, ItemPlace, ItemRows, ItemSelection } from './records.ts'
import {
  all,
  type EngineName,
  eachEngine,
  first,
  integer,
  integerOrNull,
  type Query,
  type Row,
  type Sql,
  text,
} from './statements.ts'

/** What one search reads at most. At a bound it ends early, and its rows say where. */
export interface SearchBounds {
  /** Sequence numbers, unless the bucket has no more items than these. */
  readonly numbers: number
  /** Whether a bucket with no more items than `numbers` has this bound too. */
  readonly boundsFewItems?: boolean
  /** Rows of items with the name. The other filters may exclude them. */
  readonly rows: number
}
const defaultBounds: SearchBounds = { numbers: 2 ** 20, rows: 2 ** 16 }

/** Rows that are read together at most. */
const largestBatch = 8_192
/** Rows with names that are read together at most. */
const largestRows = 1_024

/** Before all times, and after all of them. Milliseconds. */
const [firstTime, endOfTime] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]

const directions = { oldest: 'ASC', newest: 'DESC' } as const

/** What was read of the names from one number to before another. */
interface Part {
  /** Items with the name, in the order of the list. */
  readonly rows: ItemRows['rows']
  /** How many lines have all terms, and the number of the last one; `batch` of them at most. */
  readonly numbers: number
  readonly lastNumber: number | null
  /** The last row with names, if there may be others after it; needed if there are less than `batch` numbers. */
  readonly lastSlot: number | null
}

interface Range {
  readonly start: number
  readonly end: number
  readonly batch: number
  /** The most items. */
  readonly wanted: number
}

/**
 * Finds up to `limit` items whose names have all terms, as Catalog.items; to be run in one snapshot. Only the rows of items with
 * the name are read.
 */
export function* searchNames(
  engine: EngineName,
  selection: ItemSelection,
  terms: readonly string[],
  after: ItemPlace | null,
  limit: number,
  bounds = defaultBounds,
): Query<ItemRows> {
  const { bucketId, order } = selection
  const now = Date.now()
  const bucket = yield* first(
    (row) => ({
      revision: integer(row, 0),
      expired: integer(row, 1),
      nextSeq: integer(row, 2),
      total: integer(row, 3),
      sample: row[4] === null ? [] : text(row, 4).split(',').map(Number),
    }),
    bucketText(terms.length),
    ...[bucketId, now, ...(engine === 'postgres' && terms.length > 1 ? terms : [])],
  )
  if (bucket === null) throw bucketDeleted()

  const { revision, expired, nextSeq, total, sample } = bucket
  const read =
    engine === 'sqlite' ? readOnSqlite(selection, terms, now) : readOnPostgres(selection, terms, sample, now)
  const isNewest = order === 'newest'
  // Numbers from `low` to below `high` are still to be examined.
  let low = isNewest ? 0 : (after?.seq ?? -1) + 1
  let high = isNewest ? Math.min(after?.seq ?? nextSeq, nextSeq) : nextSeq
  const hasBound = total > bounds.numbers || bounds.boundsFewItems
  let numbersLeft = hasBound ? bounds.numbers : Number.POSITIVE_INFINITY
  let rowsLeft = bounds.rows
  let batch = limit
  const rows: ItemRows['rows'][number][] = []

  while (low < high && rows.length < limit && numbersLeft > 0 && rowsLeft > 0) {
    const [start, end] = isNewest
      ? [Math.max(low, high - numbersLeft), high]
      : [low, Math.min(high, low + numbersLeft)]
    const count = Math.min(batch, rowsLeft)
    const part = yield* read({ start, end, batch: count, wanted: limit - rows.length })
    // Up to there, the numbers are examined: all of them, or those of the rows that were read, or those of the matching lines that were.
    const reached = part.numbers < count ? null : part.lastNumber
    const { lastSlot } = part
    if (isNewest) high = reached ?? (lastSlot === null ? start : Math.max(start, lastSlot * namesPerRow))
    else if (reached !== null) low = reached + 1
    else low = lastSlot === null ? end : Math.min(end, (lastSlot + 1) * namesPerRow)
    numbersLeft -= isNewest ? end - high : low - start
    rowsLeft -= part.numbers
    batch = Math.min(batch * 4, largestBatch)
    rows.push(...part.rows)
  }

  if (low >= high || rows.length === limit) return { revision, expired, rows, examined: null }
  // Numbers without an item, of which there may be very many, are not left to the next search.
  const next = yield* first(
    (row) => integerOrNull(row, 0),
    `SELECT ${isNewest ? 'max' : 'min'}(seq) FROM items WHERE bucket_id = $1 AND seq >= $2 AND seq < $3`,
    ...[bucketId, low, high],
  )
  const examined = next === null ? null : { seq: isNewest ? next + 1 : next - 1, createdAt: 0 }
  return { revision, expired, rows, examined }
}

/** Rows with names, at equal distances, in which the terms of a search are counted. */
const sampled = 16

/** A bucket and, on PostgreSQL, in how many rows of a sample each of several terms is. */
const bucketText = (terms: number): Sql =>
  eachEngine((engine) => {
    const counts = Array.from(
      { length: terms },
      (_, index) => `count(*) FILTER (WHERE strpos(names, $${index + 3}) > 0)`,
    )
    const sample = `(SELECT concat_ws(',', ${counts.join(', ')}) FROM generate_series(0, ${sampled - 1}) AS part CROSS JOIN LATERAL (
        SELECT names FROM item_names WHERE bucket_id = $1 AND slot >= part * next_seq / ${sampled * namesPerRow} ORDER BY slot LIMIT 1
      ) AS sample)`
    return `SELECT revision, ${expiredColumn(engine, '$2')}, next_seq, total, ${engine === 'sqlite' || terms === 1 ? 'NULL' : sample}
      FROM buckets WHERE id = $1`
  })

type ReadPart = (range: Range) => Query<Part>

/** The values of `isSelected`. */
const filterValues = ({ kind, from, to }: ItemSelection, now: number): readonly number[] => [
  now,
  from ?? firstTime,
  to ?? endOfTime,
  kind === null ? -1 : kindNumber(kind),
]

/** Whether the other filters select an item. `first` is the number of the first value. */
const isSelected = (first: number): string =>
  `${isLive(`$${first}`)} AND created_at >= $${first + 1} AND created_at < $${first + 2}
    AND (${kindExpression} = $${first + 3} OR $${first + 3} < 0)`

/** On SQLite, rows with all terms are read, and their lines are compared here, which takes less time than in a function of SQL. */
function readOnSqlite(selection: ItemSelection, terms: readonly string[], now: number): ReadPart {
  const { bucketId, order } = selection
  const direction = directions[order]
  const patterns = terms.map(globPattern)
  const names = `SELECT slot, names FROM item_names WHERE bucket_id = $1 AND slot BETWEEN $2 AND $3
    ${patterns.map((_, index) => `AND names GLOB $${index + 5}`).join(' ')} ORDER BY slot ${direction} LIMIT $4`
  const items = `SELECT ${itemColumns}, seq FROM items WHERE bucket_id = $1 AND seq = ANY ($2::int8[]) AND ${isSelected(4)}
    ORDER BY seq ${direction} LIMIT $3`
  return function* read({ start, end, batch, wanted }) {
    const rowLimit = Math.min(batch, largestRows)
    const found = yield* all(
      (row) => ({ slot: integer(row, 0), names: text(row, 1) }),
      names,
      ...[bucketId, nameSlot(start), nameSlot(end - 1), rowLimit, ...patterns],
    )
    const seqs: number[] = []
    for (const { slot, names } of found) {
      const lines = matchingLines(names, terms)
      for (const line of order === 'newest' ? lines.toReversed() : lines) {
        const seq = slot * namesPerRow + line
        if (seq >= start && seq < end && seqs.length < batch) seqs.push(seq)
      }
      if (seqs.length === batch) break
    }
    const rows =
      seqs.length === 0
        ? []
        : yield* all(readItemRow, items, ...[bucketId, seqs, wanted, ...filterValues(selection, now)])
    return {
      rows,
      numbers: seqs.length,
      lastNumber: seqs.at(-1) ?? null,
      lastSlot: found.length < rowLimit ? null : (found.at(-1)?.slot ?? null),
    }
  }
}

/**
 * On PostgreSQL, one statement reads a part, because each one is a round trip. The rarest term is compared first, and a row that has all terms
 * with their pattern. If even the rarest one is in all rows of the sample, only the pattern is.
 */
function readOnPostgres(
  selection: ItemSelection,
  terms: readonly string[],
  sample: readonly number[],
  now: number,
): ReadPart {
  const { bucketId, order } = selection
  const counted = terms
    .map((term, index) => ({ term, rows: sample[index] ?? 0 }))
    .toSorted((one, other) => one.rows - other.rows)
  const areFrequent = counted[0]?.rows === sampled
  const sorted = counted.map(({ term }) => term)
  const pattern = linePattern(terms)
  const sql = postgresText(order, terms.length)
  return function* read({ start, end, batch, wanted }) {
    const rowLimit = Math.min(batch, largestRows)
    const read = yield* all(
      readPostgresRow,
      sql,
      ...[bucketId, nameSlot(start), nameSlot(end - 1), rowLimit, pattern, start, end, batch],
      ...[...filterValues(selection, now), wanted, areFrequent ? 1 : 0, ...sorted],
    )
    const [{ numbers = 0, lastNumber = null, slots = 0, lastSlot = null } = {}] = read
    return {
      rows: read.flatMap(({ row }) => (row === null ? [] : [row])),
      numbers,
      lastNumber,
      lastSlot: slots < rowLimit ? null : lastSlot,
    }
  }
}

/** An item or none; how many matching lines there are, and how many rows with names were read, each with the last one. */
const readPostgresRow = (row: Row) => {
  const seq = itemColumnCount
  return {
    row: row[seq] === null ? null : readItemRow(row),
    numbers: integer(row, seq + 1),
    lastNumber: integerOrNull(row, seq + 2),
    slots: integer(row, seq + 3),
    lastSlot: integerOrNull(row, seq + 4),
  }
}

/**
 * Reads the first rows with names, from one slot to another, their lines that have all terms, and the items of these lines. Rows without a term
 * are passed by with one comparison for each term, and the lines of the others are compared one by one. The rows come from the primary key in
 * their order, and their lines in theirs, so that no more rows are read than the lines need. Only if there are too few lines, all rows were read.
 */
function postgresText(order: ItemOrder, terms: number): string {
  const direction = directions[order]
  const last = order === 'oldest' ? 'max' : 'min'
  const has = (text: string) =>
    Array.from({ length: terms }, (_, index) => `strpos(${text}, $${index + 15}) > 0`).join(' AND ')
  const ofAll = (value: string) =>
    `CASE WHEN (SELECT count(*) FROM number) < $8 THEN (SELECT ${value} FROM matched) END`
  return `WITH matched AS MATERIALIZED (
      SELECT slot, lines FROM item_names CROSS JOIN LATERAL (
        SELECT array_agg(line - 1 ORDER BY line ${direction}) AS lines
        FROM unnest(string_to_array(names, E'\\n')) WITH ORDINALITY AS named (name, line)
        WHERE ${has('name')} HAVING count(*) > 0
      ) AS matched
      WHERE CASE WHEN $14::int4 = 1 OR (${has('names')}) THEN $5::text IS NULL OR names ~ $5 ELSE false END
        AND bucket_id = $1 AND slot BETWEEN $2 AND $3
      ORDER BY slot ${direction} LIMIT $4
    ), number AS MATERIALIZED (
      SELECT slot * ${namesPerRow} + line AS seq FROM matched CROSS JOIN LATERAL unnest(lines) AS line
      WHERE slot * ${namesPerRow} + line >= $6 AND slot * ${namesPerRow} + line < $7 LIMIT $8
    ), item AS MATERIALIZED (
      SELECT ${itemColumns}, seq FROM items WHERE bucket_id = $1 AND seq IN (SELECT seq FROM number) AND ${isSelected(9)}
      ORDER BY seq ${direction} LIMIT $13
    ), count AS MATERIALIZED (
      SELECT (SELECT count(*) FROM number), (SELECT ${last}(seq) FROM number),
        coalesce(${ofAll('count(*)')}, 0), ${ofAll(`${last}(slot)`)}
    )
    SELECT item.*, count.* FROM count LEFT JOIN item ON true ORDER BY seq ${direction}`
}

/** Searches that wait for others, of all buckets and of one; more are refused. */
const [maxWaiting, maxWaitingOfBucket] = [100, 50]

/** Runs up to `running` searches at a time. Buckets take turns. Throws Fault `overloaded` if too many wait. */
export function createSearchQueue(
  running: number,
): <T>(bucketId: BucketId, search: () => Promise<T>) => Promise<T> {
  /** In the order of their turns. No list is empty. */
  const waiting = new Map<BucketId, (() => void)[]>()
  let count = 0
  let free = running

  function wait(bucketId: BucketId): Promise<void> {
    const own = waiting.get(bucketId) ?? []
    if (count >= maxWaiting || own.length >= maxWaitingOfBucket)
      throw new Fault('overloaded', 'Too many searches are waiting; try again.')
    count += 1
    waiting.set(bucketId, own)
    return new Promise((resolve) => own.push(resolve))
  }

  function next(): void {
    const [turn] = waiting
    if (turn === undefined) {
      free += 1
      return
    }
    const [bucketId, [begin, ...others]] = turn
    waiting.delete(bucketId)
    if (others.length > 0) waiting.set(bucketId, others)
    count -= 1
    begin?.()
  }

  return async (bucketId, search) => {
    if (free > 0) free -= 1
    else await wait(bucketId)
    try {
      return await search()
    } finally {
      next()
    }
  }
}
