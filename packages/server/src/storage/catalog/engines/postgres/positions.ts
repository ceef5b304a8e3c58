import { bucketDeleted } from '../../../../core/faults.ts'
import type { ItemId } from '../../../../core/ids.ts'
import { pageSize } from '../../../../core/page.ts'
import type { ItemOrder } from '../../../../core/queries.ts'
import { expiredColumn, hasManyExpired } from '../../buckets.ts'
import { readFromPosition } from '../../items/expired-items.ts'
import { itemColumns } from '../../items/item-columns.ts'
import { hasItem, itemRowColumnCount, itemRowColumns, readItemDetails } from '../../items/item-rows.ts'
import { isLive } from '../../items/items.ts'
import type { BucketId, PageRows, PositionedItems } from '../../records.ts'
import {
  all,
  first,
  integer,
  itemIdOf,
  type Query,
  type Row,
  selectColumns,
  textOrNull,
} from '../../statements.ts'
import type { Run } from './session.ts'

/** The reads of a catalog. */
export interface Reads {
  readonly run: Run
  /** Runs a query in one snapshot. */
  readonly inSnapshot: <T>(query: () => Query<T>) => Promise<T>
}

/** Pages of buckets as BatchedReads reads them: by position, in the order of uploads. Counted without those that have expired. */
export const pageRows = `SELECT page.revision, page.total, page.items,
    (SELECT ${expiredColumn('postgres', '$3')} FROM buckets WHERE id = wanted.bucket), wanted.number
  FROM unnest((SELECT $1::int8[]), (SELECT $2::int8[])) WITH ORDINALITY AS wanted (bucket, first, number),
    read_page(wanted.bucket, wanted.first) AS page`

/**
 * A page of a bucket in which items have expired. The ranks count these: as many live items are skipped as expired ones precede the item at
 * the rank of the page.
 */
const livePageRows = `WITH start AS MATERIALIZED (
    SELECT seq FROM items WHERE id = split_part(split_part((SELECT items FROM read_page($1, $2)), ' ', 1), '.', 1)
  )
  SELECT revision, total, (SELECT string_agg(CASE WHEN extension IS NULL THEN id ELSE id || '.' || extension END, ' ' ORDER BY seq)
    FROM (SELECT id, extension, seq FROM items WHERE bucket_id = $1 AND seq >= (SELECT seq FROM start) AND ${isLive('$3')}
      ORDER BY seq LIMIT ${pageSize} OFFSET expired_before($1, $3, (SELECT seq FROM start))) AS page),
    ${expiredColumn('postgres', '$3')} FROM buckets WHERE id = $1 AND counted_items = 0`

const onPostgres = (postgres: string) => ({ sqlite: null, postgres })

const stateRow = onPostgres(
  `SELECT revision, total, NULL, ${expiredColumn('postgres', '$2')} FROM buckets WHERE id = $1`,
)

/** Reads a page of a bucket in which items have expired, from a position on. To be run in one snapshot. */
export function* readLivePage(
  bucketId: BucketId,
  position: number,
  now: number,
): Query<PageRows | 'no bucket'> {
  const columns = 'id, extension'
  const readRow = (row: Row) => ({ id: itemIdOf(row, 0), extension: textOrNull(row, 1) })
  const rows = yield* readFromPosition('postgres', bucketId, position, pageSize, now, columns, readRow)
  if (rows === null)
    return (yield* first(pageOf, onPostgres(livePageRows), bucketId, position, now)) ?? 'no bucket'
  const state = yield* first(pageOf, stateRow, bucketId, now)
  return state === null ? 'no bucket' : { ...state, rows }
}

export const pageOf = (row: Row): PageRows => ({
  revision: integer(row, 0),
  expired: integer(row, 3),
  total: integer(row, 1) - integer(row, 3),
  rows: itemsOf(textOrNull(row, 2)),
})

/** Parses the items of read_page: ids, and after a dot the extension if there is one, separated by spaces. */
function itemsOf(items: string | null): PageRows['rows'] {
  if (items === null) return []
  return items.split(' ').map((item) => {
    const dot = item.indexOf('.')
    return dot < 0
      ? { id: item as ItemId, extension: null }
      : { id: item.slice(0, dot) as ItemId, extension: item.slice(dot + 1) }
  })
}

const ofBucket = selectColumns({ revision: 'revision', expired: 'expired', live: 'live' }, itemRowColumnCount)

/** Items from a position among the live ones, in the order of uploads; as livePageRows. */
const positionedRows = `WITH bucket AS MATERIALIZED (
    SELECT revision, total, ${expiredColumn('postgres', '$5')} AS expired FROM buckets WHERE id = $1
  ), part AS MATERIALIZED (
    SELECT revision, expired, total - expired AS live, least($4::int8, total - expired - $3::int8) AS count FROM bucket
  ), start AS MATERIALIZED (
    SELECT seq FROM items WHERE id = split_part(split_part((SELECT page.items FROM part,
      read_page($1, CASE WHEN $2::int4 = 1 THEN live - $3::int8 - count ELSE $3::int8 END) AS page WHERE count > 0), ' ', 1), '.', 1)
  )
  SELECT item.*, ${ofBucket.text} FROM part LEFT JOIN (
    SELECT ${itemRowColumns} FROM items WHERE bucket_id = $1 AND seq >= (SELECT seq FROM start) AND ${isLive('$5')}
    ORDER BY items.seq LIMIT (SELECT greatest(count, 0) FROM part)
    OFFSET (SELECT CASE WHEN expired = 0 THEN 0 ELSE expired_before($1, $5, (SELECT seq FROM start)) END FROM part)
  ) AS item ON true ORDER BY seq`

/** As ItemReads.itemsAt. */
export async function readItemsAt(
  { run, inSnapshot }: Reads,
  bucketId: BucketId,
  order: ItemOrder,
  position: number,
  limit: number,
): Promise<PositionedItems> {
  const now = Date.now()
  const found = positioned(
    await run(positionedRows, bucketId, Number(order === 'newest'), position, limit, now),
    order,
  )
  if (found.expired === 0 || hasManyExpired(found)) return found
  return inSnapshot(() => readLiveItemsAt(bucketId, order, position, limit, now))
}

/** The same of a bucket in which items have expired. To be run in one snapshot. */
function* readLiveItemsAt(
  bucketId: BucketId,
  order: ItemOrder,
  position: number,
  limit: number,
  now: number,
): Query<PositionedItems> {
  const isNewest = order === 'newest'
  const state = yield* first(pageOf, stateRow, bucketId, now)
  if (state === null) throw bucketDeleted()
  const { revision, expired, total } = state
  const count = Math.max(0, Math.min(limit, total - position))
  const from = isNewest ? total - position - count : position
  const items = yield* readFromPosition(
    'postgres',
    ...([bucketId, from, count, now] as const),
    ...([itemColumns, readItemDetails] as const),
  )
  if (items !== null) return { revision, expired, total, items: isNewest ? items.reverse() : items }
  const rows = yield* all(
    (row) => row,
    onPostgres(positionedRows),
    ...[bucketId, Number(isNewest), position, limit, now],
  )
  return positioned(rows, order)
}

/** Reads the rows of `positionedRows`. Throws Fault `bucket-unknown` if there is no such bucket. */
function positioned(rows: readonly Row[], order: ItemOrder): PositionedItems {
  const [row] = rows
  if (row === undefined) throw bucketDeleted()
  const items = rows.flatMap((row) => (hasItem(row) ? [readItemDetails(row)] : []))
  return {
    revision: integer(row, ofBucket.at.revision),
    expired: integer(row, ofBucket.at.expired),
    total: integer(row, ofBucket.at.live),
    items: order === 'newest' ? items.reverse() : items,
  }
}
