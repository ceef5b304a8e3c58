import {
  globPattern,
  linePattern,
  matchingLines,
  nameSlot,
  namesPerRow,
  repetitionsOf,
  type SearchTerms,
} from '../../../core/names.ts'
import type { ItemOrder } from '../../../core/queries.ts'
import type { BucketId, ItemPlace, ItemSelection } from '../records.ts'
import {
  all,
  type EngineName,
  first,
  integer,
  integerOrNull,
  type Query,
  type SqlValue,
  text,
  textOrNull,
} from '../statements.ts'
import { filtersAmong } from './item-filters.ts'
import { orders, readNumbered } from './item-lists.ts'
import type { PartRequest, Source } from './item-scan.ts'

/**
 * Rows of names that one statement compares on PostgreSQL, in two milliseconds; after them, the other statements get their turn on its processors.
 * SQLite compares all of them with one statement, on a thread of its own.
 */
const maxComparedRows = 2 ** 11

/**
 * Rows with names that are read together at most. With PostgreSQL, their lines are compared on the thread that answers requests, and a row of long
 * names has 90 kB.
 */
const largestRows: Readonly<Record<EngineName, number>> = { sqlite: 1_024, postgres: 128 }

const compared = new Set(['kind', 'from', 'to', 'name'])

/** Numbers that are still to be examined, from `low` to below `high`. */
interface Range {
  readonly low: number
  readonly high: number
}

/**
 * The items of a selection whose names have all terms, in the order of their numbers. Rows of names that may have the terms in one line are read,
 * their lines are compared here, which takes less time than in SQL, and the items of these lines are read.
 */
export function createNameSource(
  engine: EngineName,
  selection: ItemSelection,
  terms: SearchTerms,
  by = selection.by,
): Source {
  const { bucketId, order } = selection
  const isNewest = order === 'newest'
  const comparisons = comparisonsOf(terms)
  const excludes = selection.kind !== null || selection.from !== null || selection.to !== null
  return {
    bucketId,
    compared: filtersAmong(selection, compared),
    isSparse: true,
    *open({ nextSeq, total }, bounds) {
      const sample =
        engine === 'postgres' && terms.length > 1 ? yield* readSample(bucketId, nextSeq, terms) : []
      const filter = engine === 'sqlite' ? filterOnSqlite(terms) : filterOnPostgres(terms, sample)
      const comparedRows = bounds.comparedRows ?? maxComparedRows
      const readLines = { engine, order, terms, filter, text: namesText(engine, filter, order, comparedRows) }
      // A bucket with few items is searched to its end, whatever numbers they have.
      const hasBound = total > bounds.numbers || bounds.boundsFewItems === true
      return function* read(after, request) {
        const low = isNewest ? 0 : (after?.seq ?? -1) + 1
        const high = isNewest ? Math.min(after?.seq ?? nextSeq, nextSeq) : nextSeq
        if (low >= high) return { rows: [], last: null, cost: {}, isFull: false }
        const most = hasBound ? request.left.numbers : Number.POSITIVE_INFINITY
        const within = isNewest
          ? { low: Math.max(low, high - most), high }
          : { low, high: Math.min(high, low + most) }
        const { range, cost } =
          comparisons > 1
            ? yield* firstCompared(bucketId, within, order, comparisons)
            : { range: within, cost: 0 }
        const { numbers, reached, isFull } = yield* findLines(bucketId, readLines, range, {
          ...request,
          ...(excludes && { wanted: request.count }),
        })
        const rest = isNewest
          ? { low, high: Math.max(range.low, reached ?? range.low) }
          : { low: Math.min(range.high, (reached ?? range.high - 1) + 1), high }
        const passed = high - low - (rest.high - rest.low)
        return {
          rows: yield* readNumbered(engine, selection, numbers, by),
          last: rest.low < rest.high ? placeBefore(rest, order) : null,
          cost: { rows: numbers.length, numbers: hasBound ? passed : 0, comparisons: cost },
          isFull,
        }
      }
    },
    // Numbers without an item, of which there may be very many, are not left to the next search.
    *next({ seq }) {
      const found = yield* first(
        (row) => integerOrNull(row, 0),
        isNewest
          ? 'SELECT max(seq) FROM items WHERE bucket_id = $1 AND seq < $2'
          : 'SELECT min(seq) FROM items WHERE bucket_id = $1 AND seq > $2',
        ...[bucketId, seq],
      )
      return found === null ? null : placeBefore({ low: found, high: found + 1 }, order)
    },
  }
}

/** The place that precedes all numbers of a range. */
const placeBefore = ({ low, high }: Range, order: ItemOrder): ItemPlace => ({
  seq: order === 'newest' ? high : low - 1,
  createdAt: 0,
})

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

/** Bytes of names times the repetitions in the terms (repetitionsOf) that one statement compares at most. */
const comparisonsOfStatement = 2 ** 25

/** The part of a range that one statement compares with terms that have repetitions, and its comparisons. */
function* firstCompared(
  bucketId: BucketId,
  { low, high }: Range,
  order: ItemOrder,
  each: number,
): Query<{ readonly range: Range; readonly cost: number }> {
  const rows = yield* all(
    (row) => ({ slot: integer(row, 0), size: integer(row, 1) }),
    `SELECT slot, octet_length(names) FROM item_names WHERE bucket_id = $1 AND slot BETWEEN $2 AND $3
      ORDER BY slot ${orders[order].direction} LIMIT ${maxComparedRows}`,
    ...[bucketId, nameSlot(low), nameSlot(high - 1)],
  )
  let cost = 0
  for (const [index, { slot, size }] of rows.entries()) {
    cost += size * each
    if (cost < comparisonsOfStatement && index < maxComparedRows - 1) continue
    const range =
      order === 'newest'
        ? { low: Math.max(low, slot * namesPerRow), high }
        : { low, high: Math.min(high, (slot + 1) * namesPerRow) }
    return { range, cost }
  }
  return { range: { low, high }, cost }
}

/** Rows with names, at equal distances, in which the terms of a search are counted. */
const sampled = 16

/** In how many rows of a sample each term is. */
function* readSample(bucketId: BucketId, nextSeq: number, terms: SearchTerms): Query<readonly number[]> {
  const counts = terms.map((_, index) => `count(*) FILTER (WHERE strpos(names, $${index + 3}) > 0)`)
  const sample = yield* first(
    (row) => text(row, 0).split(',').map(Number),
    `SELECT concat_ws(',', ${counts.join(', ')}) FROM generate_series(0, ${sampled - 1}) AS part CROSS JOIN LATERAL (
        SELECT names FROM item_names WHERE bucket_id = $1 AND slot >= part * $2::int8 / ${sampled * namesPerRow} ORDER BY slot LIMIT 1
      ) AS sample`,
    ...[bucketId, nextSeq, ...terms],
  )
  return sample ?? []
}

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

interface LineReads {
  readonly engine: EngineName
  readonly order: ItemOrder
  readonly terms: SearchTerms
  readonly filter: RowFilter
  readonly text: string
}

interface FoundLines {
  /** The numbers whose lines have all terms, in the order of the list. */
  readonly numbers: readonly number[]
  /** The last number that was examined, which may be beyond the range; null for all of the range. */
  readonly reached: number | null
  /** Whether as many rows or lines were found as one read takes at most. */
  readonly isFull: boolean
}

/** The rows come from the primary key in their order, so a statement ends when it has as many rows as lines are wanted. */
function* findLines(
  bucketId: BucketId,
  { engine, order, terms, filter, text }: LineReads,
  { low, high }: Range,
  { count, wanted }: PartRequest,
): Query<FoundLines> {
  const rowLimit = Math.min(count, largestRows[engine])
  const most = Math.min(count, wanted)
  const results = yield* all(
    (row) => ({ slot: integerOrNull(row, 0), names: textOrNull(row, 1) }),
    text,
    ...[bucketId, nameSlot(low), nameSlot(high - 1), rowLimit, ...filter.values],
  )
  const numbers: number[] = []
  for (const { slot, names } of results) {
    if (slot === null || names === null) break
    const lines = matchingLines(names, terms)
    for (const line of order === 'newest' ? lines.toReversed() : lines) {
      const seq = slot * namesPerRow + line
      if (seq >= low && seq < high && numbers.length < most) numbers.push(seq)
    }
    if (numbers.length === most) break
  }
  const last = results.at(-1) ?? { slot: null, names: null }
  const isFull = results.length === rowLimit && last.names !== null
  const lastSlot = isFull || last.names === null ? last.slot : null
  const lastNumber = numbers.length === most ? numbers.at(-1) : undefined
  const lastOfSlot = (slot: number) => slot * namesPerRow + (order === 'newest' ? 0 : namesPerRow - 1)
  return {
    numbers,
    reached: lastNumber ?? (lastSlot === null ? null : lastOfSlot(lastSlot)),
    isFull: isFull || lastNumber !== undefined,
  }
}

/** Bytes of names, times the characters of the terms. At each byte, the start of a term can be compared in vain: this many take milliseconds. */
const maxFirstComparisons = 2 ** 20

/** Whether few comparisons pass the names of `numbers` numbers that follow a place. To read the lengths takes a fraction of that time. */
export function* hasShortNames(
  { bucketId, order }: ItemSelection,
  terms: SearchTerms,
  after: ItemPlace | null,
  numbers: number,
): Query<boolean> {
  const isNewest = order === 'newest'
  const start = nameSlot(after?.seq ?? (isNewest ? Number.MAX_SAFE_INTEGER : 0))
  // The numbers that are read can begin and end within a row.
  const lengths = yield* all(
    (row) => integer(row, 0),
    `SELECT octet_length(names) FROM item_names WHERE bucket_id = $1 AND slot ${isNewest ? '<=' : '>='} $2
      ORDER BY slot ${isNewest ? 'DESC' : 'ASC'} LIMIT ${numbers / namesPerRow + 2}`,
    ...[bucketId, start],
  )
  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)
  return sum(lengths) * sum(terms.map((term) => term.length)) <= maxFirstComparisons
}
