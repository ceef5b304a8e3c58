import { bucketDeleted, Fault } from '../../core/faults.ts'
import { linePattern, nameSlot, namesPerRow } from '../../core/names.ts'
import type { ItemOrder } from '../../core/queries.ts'
import { kindExpression, kindNumber } from './item-kinds.ts'
import { expiredColumn, isLive, itemColumnCount, itemColumns, readItemDetails } from './items.ts'
import type { BucketId, ItemPlace, ItemRows, ItemSelection } from './records.ts'
import { all, eachEngine, first, integer, integerOrNull, type Query, type Sql, text } from './statements.ts'

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
    const found = yield* all(
      (row) => ({ slot: integer(row, 0), lines: numbersOf(text(row, 1)) }),
      matching(order, terms.length),
      ...[bucketId, nameSlot(start), nameSlot(end - 1), rowLimit, linePattern(terms), ...terms],
    )
    const numbers = found.flatMap(({ slot, lines }) => {
      const inOrder = isNewest ? lines.toReversed() : lines
      return inOrder.map((line) => slot * namesPerRow + line).filter((seq) => seq >= start && seq < end)
    })
    const seqs = numbers.slice(0, batch)
    const reached = numbers.length > batch ? seqs.at(-1) : undefined
    const lastSlot = found.length < rowLimit ? undefined : found.at(-1)?.slot
    if (isNewest) high = reached ?? (lastSlot === undefined ? start : Math.max(start, lastSlot * namesPerRow))
    else if (reached !== undefined) low = reached + 1
    else low = lastSlot === undefined ? end : Math.min(end, (lastSlot + 1) * namesPerRow)
    numbersLeft -= isNewest ? end - high : low - start
    rowsLeft -= seqs.length
    batch = Math.min(batch * 4, largestBatch)
    if (seqs.length === 0) continue
    const selected = yield* all(
      (row) => ({ seq: integer(row, itemColumnCount), item: readItemDetails(row) }),
      // Materialized, because PostgreSQL would otherwise read the bucket in order, up to the limit.
      `WITH item AS MATERIALIZED (SELECT ${itemColumns}, seq FROM items
        WHERE bucket_id = $1 AND seq = ANY ($2::int8[]) AND ${isLive('$3')}
          AND created_at >= $4 AND created_at < $5 AND (${kindExpression} = $6 OR $6 < 0))
      SELECT * FROM item ORDER BY seq ${directions[order]} LIMIT $7`,
      ...[bucketId, seqs, now, from ?? firstTime, to ?? endOfTime],
      ...[kind === null ? -1 : kindNumber(kind), limit - rows.length],
    )
    rows.push(...selected)
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

/** The lines of a row that match, as text. */
const numbersOf = (lines: string): readonly number[] => (lines === '' ? [] : lines.split(',').map(Number))

/**
 * The first rows with names, from one slot to another, and their lines that have all terms. Rows without a term are passed by in one comparison,
 * and the lines of the others are compared one by one. `matching_lines` is `matchingLines` of core/names.ts. The fifth value is `linePattern`,
 * which SQLite does not need. The rows come from the primary key in their order, without a sort.
 */
const matching = (order: ItemOrder, terms: number): Sql =>
  eachEngine((engine) => {
    const parameters = Array.from({ length: terms }, (_, index) => `$${index + 6}`)
    const position = engine === 'sqlite' ? 'instr' : 'strpos'
    const lines =
      engine === 'sqlite'
        ? `SELECT slot, matching_lines(names, ${parameters.join(', ')}) FROM item_names WHERE ($5 IS NULL OR true)`
        : `SELECT slot, lines FROM item_names CROSS JOIN LATERAL (
            SELECT string_agg((line - 1)::text, ',' ORDER BY line) AS lines
            FROM unnest(string_to_array(names, E'\\n')) WITH ORDINALITY AS named (name, line)
            WHERE ${parameters.map((term) => `strpos(name, ${term}) > 0`).join(' AND ')} HAVING count(*) > 0
          ) AS matched WHERE ($5::text IS NULL OR names ~ $5)`
    return `${lines} AND bucket_id = $1 AND slot BETWEEN $2 AND $3
      ${parameters.map((term) => `AND ${position}(names, ${term}) > 0`).join(' ')}
      ORDER BY slot ${directions[order]} LIMIT $4`
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
