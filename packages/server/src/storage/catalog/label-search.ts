import { bucketDeleted } from '../../core/faults.ts'
import { nameLine } from '../../core/names.ts'
import { type ItemOrder, itemKinds } from '../../core/queries.ts'
import { kindNumber } from './item-kinds.ts'
import { expiredColumn, isLive, itemColumnCount, itemColumns, readItemDetails } from './items.ts'
import type { ItemDetails, ItemPlace, ItemRows, ItemSelection } from './records.ts'
import { all, eachEngine, integer, integerOrNull, type Query, type Row, type Sql } from './statements.ts'

/** Rows of the rarest label that one search reads at most, also if it compares names. At the bound it ends early, and its rows say where. */
const [maxRows, maxNames] = [2 ** 16, 2 ** 13]

/** Rows that are read together at most, also with the items of all of them, whose names are compared. */
const [largestBatch, largestNames] = [8_192, 1_024]

/** Before all times, and after all of them. Milliseconds. */
const [firstTime, endOfTime] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]

const orders = {
  oldest: { after: '>', until: '<', direction: 'ASC', backwards: 'DESC' },
  newest: { after: '<', until: '>=', direction: 'DESC', backwards: 'ASC' },
} as const

/**
 * Finds up to `limit` items that have all labels, as Catalog.items; to be run in one snapshot. The rows of the rarest label are read from the
 * index, in the order of their times. Those that have the other labels are items to be read. One statement does all of this, because each one
 * is a round trip on PostgreSQL.
 */
export function* searchLabels(
  selection: ItemSelection,
  after: ItemPlace | null,
  limit: number,
  bound = selection.name === null ? maxRows : maxNames,
): Query<ItemRows> {
  const { bucketId, order, kind, from, to, name } = selection
  const wanted = Object.entries(selection.labels ?? {})
  const sql = statementOf(order, kind === null, wanted.length)
  const [start, end] =
    order === 'oldest' ? [from ?? firstTime, to ?? endOfTime] : [to ?? endOfTime, from ?? firstTime]
  const [now, labels] = [Date.now(), JSON.stringify(wanted)]
  const kindValues = kind === null ? [] : [kindNumber(kind)]
  const hasName = ({ filename }: ItemDetails) => {
    const line = nameLine(filename)
    return name?.every((term) => line.includes(term)) ?? true
  }
  const rows: ItemRows['rows'][number][] = []
  let place: ItemPlace = after ?? { createdAt: start, seq: -1 }
  let left = bound
  // With several labels, some of the rows are not of items that have all.
  let batch = wanted.length > 1 ? limit * 4 : limit
  for (;;) {
    const read = yield* all(
      readRow,
      sql,
      ...[bucketId, now, labels, place.createdAt, place.seq, end, batch],
      ...[name === null ? limit - rows.length : batch, ...kindValues],
    )
    const [first] = read
    if (first === undefined) throw bucketDeleted()
    const { revision, expired, count, last } = first
    const found = read.flatMap(({ row }) => (row !== null && hasName(row.item) ? [row] : []))
    rows.push(...found.slice(0, limit - rows.length))
    if (rows.length === limit || last === null || count < batch)
      return { revision, expired, rows, examined: null }
    place = last
    left -= count
    if (left <= 0) return { revision, expired, rows, examined: place }
    batch = Math.min(batch * 4, name === null ? largestBatch : Math.max(limit, largestNames))
  }
}

/** A row of the statement: an item or none, the bucket, how many rows of the index were read, and the place of the last one. */
const readRow = (row: Row) => {
  const [seq, time, number] = [itemColumnCount, itemColumnCount + 4, itemColumnCount + 5]
  const createdAt = integerOrNull(row, time)
  return {
    row: row[seq] === null ? null : { seq: integer(row, seq), item: readItemDetails(row) },
    revision: integer(row, seq + 1),
    expired: integer(row, seq + 2),
    count: integer(row, seq + 3),
    last: createdAt === null ? null : { createdAt, seq: integer(row, number) },
  }
}

/**
 * Reads a part of the index and the items in it that have all labels. `wanted` has the labels, rarest first, and `part` the rows of the rarest
 * one in their order, and whether they have the others.
 */
function statementOf(order: ItemOrder, isAnyKind: boolean, labels: number): Sql {
  const { after, until, direction, backwards } = orders[order]
  const byTime = `created_at ${direction}, seq ${direction}`
  const idOf = (rank: number) => `(SELECT id FROM wanted WHERE rank = ${rank} AND found = ${labels})`
  const ofKind = (kind: string) => `SELECT kind, created_at, seq FROM item_labels
    WHERE bucket_id = $1 AND label_id = ${idOf(1)} AND kind = ${kind}
      AND (created_at, seq) ${after} ($4, $5) AND created_at ${until} $6`
  // A scalar, because PostgreSQL may read all rows of the other label for an EXISTS.
  const hasOthers = Array.from(
    { length: labels - 1 },
    (
      _,
      index,
    ) => `(SELECT 1 FROM item_labels AS other WHERE other.bucket_id = $1 AND other.label_id = ${idOf(index + 2)}
      AND other.kind = place.kind AND other.created_at = place.created_at AND other.seq = place.seq) IS NOT NULL`,
  )
  return eachEngine((engine) => {
    const named =
      'labels.bucket_id = $1 AND labels.key = element.value ->> 0 AND labels.value = element.value ->> 1'
    // One look-up for each of them, whatever the statistics say about the labels of the bucket.
    const wanted =
      engine === 'sqlite'
        ? `json_each($3) AS element CROSS JOIN labels ON ${named}`
        : `json_array_elements($3::text::json) AS element (value)
            CROSS JOIN LATERAL (SELECT id, items FROM labels WHERE ${named} OFFSET 0) AS labels`
    const inOrder = (rows: string) => `${rows} ORDER BY ${byTime} LIMIT $7`
    // As in item-lists.ts: SQLite merges ordered ranges as they are read, PostgreSQL sorts the first rows of each.
    const ranges = itemKinds.map((kind) => {
      const range = ofKind(`${kindNumber(kind)}`)
      return engine === 'sqlite' ? range : `(${inOrder(range)})`
    })
    const places = inOrder(isAnyKind ? ranges.join(' UNION ALL ') : ofKind('$9'))
    return `WITH bucket AS MATERIALIZED (SELECT revision, ${expiredColumn('$2')} AS expired FROM buckets WHERE id = $1),
      wanted AS MATERIALIZED (
        SELECT labels.id, row_number() OVER (ORDER BY labels.items, labels.id) AS rank, count(*) OVER () AS found
        FROM ${wanted}
      ), part AS MATERIALIZED (
        SELECT created_at AS time, seq AS number, ${hasOthers.join(' AND ') || 'true'} AS has_others FROM (${places}) AS place
      ), item AS MATERIALIZED (
        SELECT ${itemColumns}, seq FROM items
        WHERE bucket_id = $1 AND seq IN (SELECT number FROM part WHERE has_others) AND ${isLive('$2')}
        ORDER BY ${byTime} LIMIT $8
      ), last AS MATERIALIZED (
        SELECT time, number FROM part ORDER BY time ${backwards}, number ${backwards} LIMIT 1
      )
      SELECT item.*, revision, expired, (SELECT count(*) FROM part), last.time, last.number
      FROM bucket LEFT JOIN last ON true LEFT JOIN item ON true ORDER BY ${byTime}`
  })
}
