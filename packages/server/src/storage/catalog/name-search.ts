import { bucketDeleted, Fault } from '../../core/faults.ts'
import { linePattern, nameSlot, namesPerRow } from '../../core/names.ts'
import type { ItemOrder } from '../../core/queries.ts'
import { kindExpression, kindNumber } from './item-kinds.ts'
import { expiredColumn, isLive, itemColumnCount, itemColumns, readItemDetails } from './items.ts'
import type { BucketId, ItemPlace, ItemRows, ItemSelection } from './records.ts'
import {
  all,
  eachEngine,
  first,
  integer,
  integerOrNull,
  type Query,
  type Row,
  type Sql,
} from './statements.ts'

/** What one search reads at most. At a bound it ends early, and its rows say where. */
export interface SearchBounds {
  /** Sequence numbers, unless the bucket has no more items than these. */
  readonly numbers: number
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

/**
 * Finds up to `limit` items whose names have all terms, as Catalog.items; to be run in one snapshot. Only the rows of items with
 * the name are read.
 */
export function* searchNames(
  { bucketId, order, kind, from, to }: ItemSelection,
  terms: readonly string[],
  after: ItemPlace | null,
  limit: number,
  bounds = defaultBounds,
): Query<ItemRows> {
  const now = Date.now()
  const bucket = yield* first(
    (row) => ({
      revision: integer(row, 0),
      expired: integer(row, 1),
      nextSeq: integer(row, 2),
      total: integer(row, 3),
    }),
    `SELECT revision, ${expiredColumn('$2')}, next_seq, total FROM buckets WHERE id = $1`,
    ...[bucketId, now],
  )
  if (bucket === null) throw bucketDeleted()

  const { revision, expired, nextSeq, total } = bucket
  const isNewest = order === 'newest'
  // Numbers from `low` to below `high` are still to be examined.
  let low = isNewest ? 0 : (after?.seq ?? -1) + 1
  let high = isNewest ? Math.min(after?.seq ?? nextSeq, nextSeq) : nextSeq
  let numbersLeft = total <= bounds.numbers ? Number.POSITIVE_INFINITY : bounds.numbers
  let rowsLeft = bounds.rows
  let batch = limit
  const rows: ItemRows['rows'][number][] = []

  while (low < high && rows.length < limit && numbersLeft > 0 && rowsLeft > 0) {
    const [start, end] = isNewest
      ? [Math.max(low, high - numbersLeft), high]
      : [low, Math.min(high, low + numbersLeft)]
    const rowLimit = Math.min(batch, largestRows)
    const read = yield* all(
      readRow,
      matching(order, terms.length),
      ...[bucketId, nameSlot(start), nameSlot(end - 1), rowLimit, linePattern(terms), start, end, batch],
      ...[now, from ?? firstTime, to ?? endOfTime, kind === null ? -1 : kindNumber(kind)],
      ...[limit - rows.length, ...terms],
    )
    const [{ slots = 0, lastSlot = null, numbers = 0, lastNumber = null } = {}] = read
    // Up to there, the numbers are examined: all of them, or those of the rows that were read, or those of the matching lines that were.
    const reached = numbers < batch ? null : lastNumber
    const reachedSlot = slots < rowLimit ? null : lastSlot
    if (isNewest)
      high = reached ?? (reachedSlot === null ? start : Math.max(start, reachedSlot * namesPerRow))
    else if (reached !== null) low = reached + 1
    else low = reachedSlot === null ? end : Math.min(end, (reachedSlot + 1) * namesPerRow)
    numbersLeft -= isNewest ? end - high : low - start
    rowsLeft -= numbers
    batch = Math.min(batch * 4, largestBatch)
    rows.push(...read.flatMap(({ row }) => (row === null ? [] : [row])))
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

/** A row of `matching`: an item or none; how many rows with names were read, and how many matching lines they have, each with the last one. */
const readRow = (row: Row) => {
  const seq = itemColumnCount
  return {
    row: row[seq] === null ? null : { seq: integer(row, seq), item: readItemDetails(row) },
    slots: integer(row, seq + 1),
    lastSlot: integerOrNull(row, seq + 2),
    numbers: integer(row, seq + 3),
    lastNumber: integerOrNull(row, seq + 4),
  }
}

/**
 * Reads the first rows with names, from one slot to another, their lines that have all terms, and the items of these lines. Rows without a term
 * are passed by with one comparison for each term, and the lines of the others are compared one by one. `matching_lines` is `matchingLines` of
 * core/names.ts. The fifth value is `linePattern`, which SQLite does not need. The rows come from the primary key in their order, without a sort.
 */
const matching = (order: ItemOrder, terms: number): Sql =>
  eachEngine((engine) => {
    const direction = directions[order]
    const last = order === 'oldest' ? 'max' : 'min'
    const parameters = Array.from({ length: terms }, (_, index) => `$${index + 14}`)
    const has = (text: string) =>
      parameters
        .map((term) => `${engine === 'sqlite' ? 'instr' : 'strpos'}(${text}, ${term}) > 0`)
        .join(' AND ')
    const inSlots = 'bucket_id = $1 AND slot BETWEEN $2 AND $3'
    const [matched, numbers] =
      engine === 'sqlite'
        ? [
            `SELECT slot, matching_lines(names, ${parameters.join(', ')}) AS lines FROM item_names
              WHERE ($5 IS NULL OR true) AND ${inSlots} AND ${has('names')}`,
            `SELECT slot * ${namesPerRow} + line.value AS seq FROM matched, json_each('[' || lines || ']') AS line`,
          ]
        : [
            // The pattern takes longer than the terms, so it is compared last.
            `SELECT slot, lines FROM item_names CROSS JOIN LATERAL (
                SELECT array_agg(line - 1) AS lines
                FROM unnest(string_to_array(names, E'\\n')) WITH ORDINALITY AS named (name, line)
                WHERE ${has('name')} HAVING count(*) > 0
              ) AS matched
              WHERE CASE WHEN ${has('names')} THEN $5::text IS NULL OR names ~ $5 ELSE false END AND ${inSlots}`,
            `SELECT slot * ${namesPerRow} + line AS seq FROM matched, unnest(lines) AS line`,
          ]
    return `WITH matched AS MATERIALIZED (
        ${matched} ORDER BY slot ${direction} LIMIT $4
      ), number AS MATERIALIZED (
        SELECT seq FROM (${numbers}) AS line WHERE seq >= $6 AND seq < $7 ORDER BY seq ${direction} LIMIT $8
      ), item AS MATERIALIZED (
        SELECT ${itemColumns}, seq FROM items WHERE bucket_id = $1 AND seq IN (SELECT seq FROM number) AND ${isLive('$9')}
          AND created_at >= $10 AND created_at < $11 AND (${kindExpression} = $12 OR $12 < 0)
        ORDER BY seq ${direction} LIMIT $13
      ), count AS (
        SELECT (SELECT count(*) FROM matched), (SELECT ${last}(slot) FROM matched),
          (SELECT count(*) FROM number), (SELECT ${last}(seq) FROM number)
      )
      SELECT item.*, count.* FROM count LEFT JOIN item ON true ORDER BY seq ${direction}`
  })

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
