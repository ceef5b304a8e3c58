import type { BucketOrder } from '../../core/bucket-queries.ts'
import {
  bucketColumns,
  bucketsWithTrash,
  bucketWithTrashOf,
  expiredOfBucket,
  expiredOfTrash,
  expiredPlaces,
  isNotDeleted,
  trashColumns,
} from './buckets.ts'
import type { BucketId, BucketWithTrash } from './records.ts'
import {
  all,
  bucketIdOf,
  type EngineName,
  eachEngine,
  first,
  integer,
  type Query,
  type Row,
  type SqlValue,
} from './statements.ts'

/** A bucket of a list of buckets. */
export interface ListedBucket extends BucketWithTrash {
  readonly id: BucketId
  /** Milliseconds since 1970. */
  readonly createdAt: number
}

/** The place of a bucket in an order: the value that it sorts by, and its id. */
export interface BucketPlace {
  readonly value: string | number
  readonly id: number
}

export interface BucketSelection {
  readonly order: BucketOrder
  /** The first characters of the names; empty for all buckets. */
  readonly prefix: string
}

interface BucketRows {
  /** All buckets of the selection. Items that have expired count until they are removed. */
  readonly totals: { readonly buckets: number; readonly items: number; readonly bytes: number }
  readonly rows: readonly { readonly bucket: ListedBucket; readonly place: BucketPlace }[]
}

/** What each order sorts by. Counters include items that have expired and are not removed yet, so that no item is read to sort. */
const sortOf: {
  readonly [Order in BucketOrder]: { readonly value: string; readonly isDescending: boolean }
} = {
  name: { value: 'name', isDescending: false },
  'name-desc': { value: 'name', isDescending: true },
  created: { value: 'id', isDescending: false },
  'created-desc': { value: 'id', isDescending: true },
  items: { value: 'total - counted_items', isDescending: true },
  'items-asc': { value: 'total - counted_items', isDescending: false },
  bytes: { value: 'bytes - counted_bytes', isDescending: true },
  'bytes-asc': { value: 'bytes - counted_bytes', isDescending: false },
}

const listedColumns = (engine: EngineName) =>
  `${bucketColumns}, ${expiredOfBucket(engine, '$1')}, ${trashColumns}, ${expiredOfTrash(engine, '$1')}, id, created_at`

const idPlace = expiredPlaces.expiredTrashBytes + 1

const readListed = (row: Row): ListedBucket => ({
  ...bucketWithTrashOf(row),
  id: bucketIdOf(row, idPlace),
  createdAt: integer(row, idPlace + 1),
})

/** Without a prefix the table is read in its order, which takes less time. No name has a brace, which follows all letters. */
const selectedBy = (hasPrefix: boolean) =>
  hasPrefix
    ? `id > 0 AND ${isNotDeleted} AND name >= $2 AND name < $2 || '{'`
    : `id > 0 AND ${isNotDeleted} AND $2 = ''`

/** The statement of an order, from the first bucket or after a place. A sort of all rows costs less than an index that each upload would change. */
const listOf = (order: BucketOrder, isFirst: boolean, hasPrefix: boolean) =>
  eachEngine((engine) => {
    const selected = selectedBy(hasPrefix)
    const { value, isDescending } = sortOf[order]
    const [direction, follows] = isDescending ? ['DESC', '<'] : ['ASC', '>']
    const after = isFirst ? '' : `AND (${value}, id) ${follows} ($4, $5)`
    // One statement, and so one snapshot.
    return `WITH page AS MATERIALIZED (
      SELECT id AS page_id, ${value} AS page_value FROM buckets WHERE ${selected} ${after}
      ORDER BY page_value ${direction}, id ${direction} LIMIT $3
    ), listed AS MATERIALIZED (
      SELECT ${listedColumns(engine)}, page_value FROM page CROSS JOIN ${bucketsWithTrash} WHERE buckets.id = page_id
    )
    SELECT listed.*, all_buckets, all_items, all_bytes FROM (
      SELECT count(*) AS all_buckets, coalesce(sum(total - counted_items), 0)::int8 AS all_items,
        coalesce(sum(bytes - counted_bytes), 0)::int8 AS all_bytes FROM buckets WHERE ${selected}
    ) AS totals LEFT JOIN listed ON true ORDER BY page_value ${direction}, listed.id ${direction}`
  })

const orders = Object.keys(sortOf) as BucketOrder[]
const keyOf = (order: BucketOrder, isFirst: boolean, hasPrefix: boolean) => `${order} ${isFirst} ${hasPrefix}`
const lists = new Map(
  orders.flatMap((order) =>
    [true, false].flatMap((isFirst) =>
      [true, false].map(
        (hasPrefix) => [keyOf(order, isFirst, hasPrefix), listOf(order, isFirst, hasPrefix)] as const,
      ),
    ),
  ),
)

/** Up to `limit` buckets that follow `after` in the order, and the totals of all, in one state. */
export function* listBucketsAfter(
  { order, prefix }: BucketSelection,
  after: BucketPlace | null,
  limit: number,
): Query<BucketRows> {
  const sql = lists.get(keyOf(order, after === null, prefix !== ''))
  if (sql === undefined) throw new TypeError(`no order of buckets is called ${order}`)
  const values: SqlValue[] = [Date.now(), prefix, limit]
  const rows = yield* after === null
    ? all(readRow, sql, ...values)
    : all(readRow, sql, ...values, after.value, after.id)
  const [{ totals } = { totals: { buckets: 0, items: 0, bytes: 0 } }] = rows
  return { totals, rows: rows.flatMap(({ listed }) => listed ?? []) }
}

const readRow = (row: Row) => {
  const value = row[idPlace + 2]
  const [buckets, items, bytes] = [
    integer(row, idPlace + 3),
    integer(row, idPlace + 4),
    integer(row, idPlace + 5),
  ]
  return {
    totals: { buckets, items, bytes },
    listed:
      typeof value === 'string' || typeof value === 'number'
        ? { bucket: readListed(row), place: { value, id: integer(row, idPlace) } }
        : null,
  }
}

const oneBucket = eachEngine(
  (engine) =>
    `SELECT ${listedColumns(engine)} FROM ${bucketsWithTrash} WHERE name = $2 AND id > 0 AND ${isNotDeleted}`,
)

/** The bucket with this name, as in lists; null if there is none. */
export const findListedBucket = (name: string): Query<ListedBucket | null> =>
  first(readListed, oneBucket, Date.now(), name)

export const reads = { listBucketsAfter, findListedBucket }
