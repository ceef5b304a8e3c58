import { bucketDeleted, Fault } from '../../core/faults.ts'
import {
  globPattern,
  linePattern,
  matchingLines,
  nameSlot,
  namesPerRow,
  repetitionsOf,
  type SearchTerms,
} from '../../core/names.ts'
import type { ItemOrder } from '../../core/queries.ts'
import { expiredColumn } from './buckets.ts'
import { kindExpression, kindNumber } from './item-kinds.ts'
import { endOfTime, firstTime, orders } from './item-lists.ts'
import { itemRowColumns, readItemRow } from './item-rows.ts'
import { isLive } from './items.ts'
import type { BucketId, ItemPlace, ItemRows, ItemSelection } from './records.ts'
import {
  all,
  type EngineName,
  eachEngine,
  first,
  integer,
  integerOrNull,
  type Query,
  type Sql,
  type SqlValue,
  text,
  textOrNull,
} from './statements.ts'

/** What one search reads at most. At a bound it ends early, and its rows say where. */
export interface SearchBounds {
  /** Sequence numbers, unless the bucket has no more items than these. */
  readonly numbers: number
  /** Whether a bucket with no more items than `numbers` has this bound too. */
  readonly boundsFewItems?: boolean
  /** Rows of items with the name. The other filters may exclude them. */
  readonly rows: number
  /** Rows of names that one statement compares on PostgreSQL. */
  readonly comparedRows?: number
}
const defaultBounds: SearchBounds = { numbers: 2 ** 20, rows: 2 ** 16 }

/**
 * Bytes of names times the repetitions in the terms (repetitionsOf) that one search compares at most, in tenths of a second, and one statement of it.
 * Without repetitions, `numbers` ends a search earlier.
 */
const [maxComparisons, comparisonsOfStatement] = [2 ** 28, 2 ** 25]

/** Repetitions that words have. */
const fewRepetitions = 3

/** How many characters are compared at one byte of a name, at the most; 1 for usual terms. */
function comparisonsOf(terms: readonly string[]): number {
  const repetitions = terms.map(repetitionsOf).filter((count) => count > fewRepetitions)
  return Math.max(
    1,
    repetitions.reduce((sum, count) => sum + count, 0),
  )
}

/** The part of a range that one statement compares with terms that have repetitions, and its comparisons. */
function* firstCompared(
  bucketId: BucketId,
  { start, end }: Pick<Range, 'start' | 'end'>,
  order: ItemOrder,
  each: number,
): Query<{ readonly start: number; readonly end: number; readonly comparisons: number }> {
  const rows = yield* all(
    (row) => ({ slot: integer(row, 0), size: integer(row, 1) }),
    `SELECT slot, octet_length(names) FROM item_names WHERE bucket_id = $1 AND slot BETWEEN $2 AND $3
      ORDER BY slot ${orders[order].direction} LIMIT ${maxComparedRows}`,
    ...[bucketId, nameSlot(start), nameSlot(end - 1)],
  )
  let comparisons = 0
  for (const [index, { slot, size }] of rows.entries()) {
    comparisons += size * each
    if (comparisons < comparisonsOfStatement && index < maxComparedRows - 1) continue
    return order === 'newest'
      ? { start: Math.max(start, slot * namesPerRow), end, comparisons }
      : { start, end: Math.min(end, (slot + 1) * namesPerRow), comparisons }
  }
  return { start, end, comparisons }
}

/**
 * Rows of names that one statement compares on PostgreSQL, in two milliseconds; after them, the other statements get their turn on its processors.
 * SQLite compares all of them with one statement, on a thread of its own.
 */
const maxComparedRows = 2 ** 11

/** Rows that are read together at most. */
const largestBatch = 8_192
/**
 * Rows with names that are read together at most. With PostgreSQL, their lines are compared on the thread that answers requests, and a row of long
 * names has 90 kB.
 */
const largestRows: Readonly<Record<EngineName, number>> = { sqlite: 1_024, postgres: 128 }

/** What was read of the names from one number to before another. */
interface Part {
  /** Items with the name, in the order of the list. */
  readonly rows: ItemRows['rows']
  /** How many lines have all terms; `batch` of them at most. */
  readonly numbers: number
  /** The last number that was examined, which may be beyond the range; null for all of the range. */
  readonly reached: number | null
  /** Whether as many rows or lines were found as one read takes at most. */
  readonly isAtLimit: boolean
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
  terms: SearchTerms,
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
  const rowFilter = engine === 'sqlite' ? filterOnSqlite(terms) : filterOnPostgres(terms, sample)
  const comparedRows = bounds.comparedRows ?? maxComparedRows
  const read = createReadPart(
    engine,
    selection,
    terms,
    rowFilter,
    comparedRows,
    selectionValues(selection, now),
  )
  const isNewest = order === 'newest'
  // Numbers from `low` to below `high` are still to be examined.
  let low = isNewest ? 0 : (after?.seq ?? -1) + 1
  let high = isNewest ? Math.min(after?.seq ?? nextSeq, nextSeq) : nextSeq
  const hasBound = total > bounds.numbers || bounds.boundsFewItems
  let numbersLeft = hasBound ? bounds.numbers : Number.POSITIVE_INFINITY
  let rowsLeft = bounds.rows
  const comparisons = comparisonsOf(terms)
  let comparisonsLeft = maxComparisons
  let batch = limit
  const rows: ItemRows['rows'][number][] = []

  while (low < high && rows.length < limit && numbersLeft > 0 && rowsLeft > 0 && comparisonsLeft > 0) {
    let [start, end] = isNewest
      ? [Math.max(low, high - numbersLeft), high]
      : [low, Math.min(high, low + numbersLeft)]
    if (comparisons > 1) {
      const compared = yield* firstCompared(bucketId, { start, end }, order, comparisons)
      ;[start, end] = [compared.start, compared.end]
      comparisonsLeft -= compared.comparisons
    }
    const count = Math.min(batch, rowsLeft)
    const part = yield* read({ start, end, batch: count, wanted: limit - rows.length })
    if (isNewest) high = Math.max(start, part.reached ?? start)
    else low = Math.min(end, (part.reached ?? end) + 1)
    numbersLeft -= isNewest ? end - high : low - start
    rowsLeft -= part.numbers
    if (part.isAtLimit) batch = Math.min(batch * 4, largestBatch)
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
const selectionValues = ({ kind, from, to }: ItemSelection, now: number): readonly number[] => [
  now,
  from ?? firstTime,
  to ?? endOfTime,
  kind === null ? -1 : kindNumber(kind),
]

/** Whether the other filters select an item. `first` is the number of the first value. */
const isSelected = (first: number): string =>
  `${isLive(`$${first}`)} AND created_at >= $${first + 1} AND created_at < $${first + 2}
    AND (${kindExpression} = $${first + 3} OR $${first + 3} < 0)`

/** A condition for the text of a row. Each row with all terms in one line passes it, and so may others. Its first value is the fifth of the statement. */
interface RowFilter {
  readonly sql: string
  readonly values: readonly SqlValue[]
}

const filterOnSqlite = (terms: readonly string[]): RowFilter => ({
  sql: terms.map((_, index) => `names GLOB $${index + 5}`).join(' AND '),
  values: terms.map(globPattern),
})

/**
 * On PostgreSQL, the rarest term is compared first. A row with all terms is then compared with their pattern, so that fewer rows are sent. If even
 * the rarest term is in all rows of the sample, only the pattern is compared.
 */
function filterOnPostgres(terms: readonly string[], sample: readonly number[]): RowFilter {
  const counted = terms
    .map((term, index) => ({ term, rows: sample[index] ?? 0 }))
    .toSorted((one, other) => one.rows - other.rows)
  const areFrequent = counted[0]?.rows === sampled
  const hasTerms = terms.map((_, index) => `strpos(names, $${index + 7}) > 0`).join(' AND ')
  return {
    sql: `CASE WHEN $6::int4 = 1 OR (${hasTerms}) THEN $5::text IS NULL OR names ~ $5 ELSE false END`,
    values: [linePattern(terms), areFrequent ? 1 : 0, ...counted.map(({ term }) => term)],
  }
}

/**
 * Reads rows that pass the filter. The first values are the bucket, the first and the last slot, and the most rows. On PostgreSQL, a row without
 * names follows fewer rows than that: its slot is of the last row that the statement compared, or null if that was all of them. PostgreSQL runs the
 * parts of UNION ALL one after the other, and none after the most rows. SQL does not guarantee this order; a transaction without parallel workers keeps it.
 */
function namesText(engine: EngineName, { sql }: RowFilter, order: ItemOrder, comparedRows: number): string {
  const inOrder = `ORDER BY slot ${orders[order].direction}`
  const selected = 'FROM item_names WHERE bucket_id = $1 AND slot BETWEEN $2 AND $3'
  return engine === 'sqlite'
    ? `SELECT slot, names ${selected} AND ${sql} ${inOrder} LIMIT $4`
    : `(SELECT slot, names FROM (SELECT slot, names ${selected} ${inOrder} LIMIT ${comparedRows}) AS compared WHERE ${sql} ${inOrder} LIMIT $4)
      UNION ALL SELECT (SELECT slot ${selected} ${inOrder} LIMIT 1 OFFSET ${comparedRows - 1}), NULL LIMIT $4`
}

/**
 * Reads rows that may have the terms in one line, compares their lines here, which takes less time than in SQL, and reads the items of these
 * lines. The rows come from the primary key in their order, so a statement ends when it has as many rows as lines are wanted.
 */
function createReadPart(
  engine: EngineName,
  { bucketId, order }: ItemSelection,
  terms: SearchTerms,
  filter: RowFilter,
  comparedRows: number,
  values: readonly number[],
): ReadPart {
  const names = namesText(engine, filter, order, comparedRows)
  // In this form, PostgreSQL looks each number up, whatever it knows of the bucket.
  const numbers = engine === 'sqlite' ? '= ANY ($2::int8[])' : 'IN (SELECT unnest($2::int8[]))'
  const items = `SELECT ${itemRowColumns} FROM items WHERE bucket_id = $1 AND seq ${numbers} AND ${isSelected(4)}
    ORDER BY seq ${orders[order].direction} LIMIT $3`
  const lastOfRow = (slot: number) => slot * namesPerRow + (order === 'newest' ? 0 : namesPerRow - 1)
  return function* read({ start, end, batch, wanted }) {
    const rowLimit = Math.min(batch, largestRows[engine])
    const results = yield* all(
      (row) => ({ slot: integerOrNull(row, 0), names: textOrNull(row, 1) }),
      names,
      ...[bucketId, nameSlot(start), nameSlot(end - 1), rowLimit, ...filter.values],
    )
    const seqs: number[] = []
    for (const { slot, names } of results) {
      if (slot === null || names === null) break
      const lines = matchingLines(names, terms)
      for (const line of order === 'newest' ? lines.toReversed() : lines) {
        const seq = slot * namesPerRow + line
        if (seq >= start && seq < end && seqs.length < batch) seqs.push(seq)
      }
      if (seqs.length === batch) break
    }
    const rows =
      seqs.length === 0 ? [] : yield* all(readItemRow, items, ...[bucketId, seqs, wanted, ...values])
    const last = results.at(-1) ?? { slot: null, names: null }
    const isFull = results.length === rowLimit && last.names !== null
    const lastSlot = isFull || last.names === null ? last.slot : null
    const lastNumber = seqs.length === batch ? seqs.at(-1) : undefined
    return {
      rows,
      numbers: seqs.length,
      reached: lastNumber ?? (lastSlot === null ? null : lastOfRow(lastSlot)),
      isAtLimit: isFull || lastNumber !== undefined,
    }
  }
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
