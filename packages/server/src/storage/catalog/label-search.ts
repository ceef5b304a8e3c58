import { bucketDeleted } from '../../core/faults.ts'
import { containsAll, nameLine } from '../../core/names.ts'
import { type ItemOrder, itemKinds } from '../../core/queries.ts'
import { expiredColumn } from './buckets.ts'
import { kindNumber } from './item-kinds.ts'
import { endOfTime, firstTime, orders, readBucketState } from './item-lists.ts'
import { hasItem, itemRowColumnCount, itemRowColumns, readItemRow } from './item-rows.ts'
import { isLive } from './items.ts'
import type { ItemDetails, ItemPlace, ItemRows, ItemSelection } from './records.ts'
import { all, type EngineName, first, integer, type Query, type Row, selectColumns } from './statements.ts'

/** Rows of the rarest label that one search reads at most, also if it compares names. At the bound it ends early, and its rows say where. */
const [maxRows, maxNames] = [2 ** 16, 2 ** 13]

/**
 * Rows that are read together: at first for several labels, and at most, also with the items of all of them, whose names are compared. A part ends
 * early when it has found enough items, so its size costs nothing where many items have all labels.
 */
const [firstBatch, largestBatch, largestNames] = [1_024, 8_192, 1_024]

/** What was read of the index. */
interface Part {
  readonly revision: number
  readonly expired: number
  /** Items that have all labels, in the order of the list: as many as were wanted, or all of the part. */
  readonly found: ItemRows['rows']
  /** The place of the last row; null if the index ends before it. Not read if as many items as wanted were found. */
  readonly last: ItemPlace | null
}

/** Reads the first `batch` rows of the index after a place, until `wanted` items are found. */
type ReadPart = (place: ItemPlace, batch: number, wanted: number) => Query<Part>

/**
 * Finds up to `limit` items that have all labels, as Catalog.items; to be run in one snapshot. The rows of the rarest label are read from the
 * index, in the order of their times. Those that have the other labels are items to be read.
 */
export function* searchLabels(
  engine: EngineName,
  selection: ItemSelection,
  after: ItemPlace | null,
  limit: number,
  bound = selection.name === null ? maxRows : maxNames,
): Query<ItemRows> {
  const { name, labels } = selection
  const hasName = ({ filename }: ItemDetails) => name === null || containsAll(nameLine(filename), name)
  const isOneLabel = Object.keys(labels ?? {}).length === 1
  const readPart = engine === 'sqlite' ? yield* openParts(selection) : partReader(selection)
  const rows: ItemRows['rows'][number][] = []
  let place: ItemPlace = after ?? { createdAt: rangeOf(selection).start, seq: -1 }
  let left = bound
  let batch = name !== null || isOneLabel ? limit : Math.max(limit, firstBatch)
  for (;;) {
    const count = Math.min(batch, left)
    const wanted = name === null ? limit - rows.length : count
    const { revision, expired, found, last } = yield* readPart(place, count, wanted)
    rows.push(...found.filter(({ item }) => hasName(item)).slice(0, limit - rows.length))
    const end = found.length < wanted ? last : lastPlace(found)
    if (rows.length === limit || end === null) return { revision, expired, rows, examined: null }
    place = end
    left -= count
    if (left <= 0) return { revision, expired, rows, examined: place }
    batch = Math.min(batch * 4, name === null ? largestBatch : Math.max(limit, largestNames))
  }
}

function lastPlace(found: ItemRows['rows']): ItemPlace | null {
  const last = found.at(-1)
  return last === undefined ? null : { seq: last.seq, createdAt: last.item.createdAt }
}

/** The times at which a list starts and ends. */
const rangeOf = ({ order, from, to }: ItemSelection) =>
  order === 'oldest'
    ? { start: from ?? firstTime, end: to ?? endOfTime }
    : { start: to ?? endOfTime, end: from ?? firstTime }

const kindValues = ({ kind }: ItemSelection): readonly number[] => (kind === null ? [] : [kindNumber(kind)])

const lastPlaceColumns = selectColumns({ time: 'created_at', number: 'seq' })

const readPlace = (row: Row, at = lastPlaceColumns.at): ItemPlace => ({
  createdAt: integer(row, at.time),
  seq: integer(row, at.number),
})

/** Parts on SQLite, where several short statements are faster than one that does everything. The labels are looked up once. */
function* openParts(selection: ItemSelection): Query<ReadPart> {
  const { bucketId } = selection
  const now = Date.now()
  const bucket = yield* readBucketState(bucketId, now)
  const pairs = Object.entries(selection.labels ?? {})
  const labels: { readonly id: number; readonly items: number }[] = []
  for (const [key, value] of pairs) {
    const label = yield* first(
      (row) => ({ id: integer(row, 0), items: integer(row, 1) }),
      'SELECT id, items FROM labels WHERE bucket_id = $1 AND key = $2 AND value = $3',
      ...[bucketId, key, value],
    )
    if (label !== null) labels.push(label)
  }
  const [rarest, ...others] = labels.toSorted((one, other) => one.items - other.items || one.id - other.id)
  const texts = textsOf(selection, pairs.length)
  return function* readPart(place, batch, wanted) {
    if (rarest === undefined || labels.length < pairs.length) return { ...bucket, found: [], last: null }
    const { end } = rangeOf(selection)
    const range = [bucketId, rarest.id, place.createdAt, place.seq, end, batch, ...kindValues(selection)]
    const found = yield* all(
      readItemRow,
      texts.sqlite.items,
      ...[...range, now, wanted, ...others.map(({ id }) => id)],
    )
    const isEnd = found.length === wanted || rarest.items < batch
    const last = isEnd ? null : yield* first((row) => readPlace(row), texts.sqlite.last, ...range)
    return { ...bucket, found, last }
  }
}

/** Parts on PostgreSQL, each with one statement, because a statement is a round trip. */
function partReader(selection: ItemSelection): ReadPart {
  const { bucketId } = selection
  const labels = Object.entries(selection.labels ?? {})
  const { postgres } = textsOf(selection, labels.length)
  const [now, json] = [Date.now(), JSON.stringify(labels)]
  return function* readPart(place, batch, wanted) {
    const read = yield* all(
      (row) => ({
        row: hasItem(row) ? readItemRow(row) : null,
        bucket: { revision: integer(row, ofPart.at.revision), expired: integer(row, ofPart.at.expired) },
        last: row[ofPart.at.time] === null ? null : readPlace(row, ofPart.at),
      }),
      postgres,
      ...[bucketId, json, place.createdAt, place.seq, rangeOf(selection).end, batch],
      ...[...kindValues(selection), now, wanted],
    )
    const [first] = read
    if (first === undefined) throw bucketDeleted()
    const { bucket, last } = first
    return { ...bucket, found: read.flatMap(({ row }) => (row === null ? [] : [row])), last }
  }
}

interface PartTexts {
  /** The items of a part, and the place of its last row. The last values are the ids of the other labels. */
  readonly sqlite: { readonly items: string; readonly last: string }
  readonly postgres: string
}

const texts = new Map<string, PartTexts>()

/** The same texts for the same form of a selection, because statements are found by their texts. */
function textsOf({ order, kind }: ItemSelection, labels: number): PartTexts {
  const key = `${order} ${kind === null} ${labels}`
  const known = texts.get(key) ?? writeTexts(order, kind === null, labels)
  texts.set(key, known)
  return known
}

/** On PostgreSQL, with each row of items. */
const ofPart = selectColumns(
  { revision: 'revision', expired: 'expired', time: 'last.time', number: 'last.number' },
  itemRowColumnCount,
)

const ofItems = itemRowColumns.replaceAll(/\w+/g, 'items.$&')

/**
 * The first value is the bucket, the second one a label or all of them as JSON, and then come the place, the end, the batch, the kind if there is
 * one, the time and the wanted items. A join has the places in their order, so that it ends when it has found enough.
 */
function writeTexts(order: ItemOrder, isAnyKind: boolean, labels: number): PartTexts {
  const { after, until, direction } = orders[order]
  const [now, wanted] = isAnyKind ? ['$7', '$8'] : ['$8', '$9']
  const byTime = `created_at ${direction}, seq ${direction}`
  const others = Array.from({ length: labels - 1 }, (_, index) => index)
  const ofKind = (label: string, kind: string) => `SELECT kind, created_at, seq FROM item_labels
    WHERE bucket_id = $1 AND label_id = ${label} AND kind = ${kind}
      AND (created_at, seq) ${after} ($3, $4) AND created_at ${until} $5`
  const inOrder = (rows: string) => `${rows} ORDER BY ${byTime} LIMIT $6`
  const places = (label: string, each: (rows: string) => string) =>
    inOrder(
      isAnyKind
        ? itemKinds.map((kind) => each(ofKind(label, `${kindNumber(kind)}`))).join(' UNION ALL ')
        : ofKind(label, '$7'),
    )
  const isSame = (other: string, label: string) => `${other}.bucket_id = $1 AND ${other}.label_id = ${label}
    AND ${other}.kind = place.kind AND ${other}.created_at = place.created_at AND ${other}.seq = place.seq`
  const ofPlace = `items.bucket_id = $1 AND items.seq = place.seq AND ${isLive(now)}`
  // As in item-lists.ts: SQLite merges ordered ranges as they are read, PostgreSQL sorts the first rows of each.
  const inSqlite = places('$2', (rows) => rows)
  const joined = others.map(
    (index) =>
      `CROSS JOIN item_labels AS other${index} ON ${isSame(`other${index}`, `$${index + (isAnyKind ? 9 : 10)}`)}`,
  )
  const idOf = (rank: number) => `(SELECT id FROM wanted WHERE rank = ${rank} AND found = ${labels})`
  // A scalar, because PostgreSQL may read all rows of the other label for an EXISTS.
  const filters = others.map(
    (index) => `(SELECT 1 FROM item_labels AS other WHERE ${isSame('other', idOf(index + 2))}) IS NOT NULL`,
  )
  return {
    sqlite: {
      items: `SELECT ${ofItems} FROM (${inSqlite}) AS place ${joined.join(' ')} CROSS JOIN items ON ${ofPlace} LIMIT ${wanted}`,
      last: `SELECT ${lastPlaceColumns.text} FROM (${inSqlite}) AS place LIMIT 1 OFFSET $6 - 1`,
    },
    postgres: `WITH bucket AS MATERIALIZED (SELECT revision, ${expiredColumn('postgres', now)} AS expired FROM buckets WHERE id = $1),
      wanted AS MATERIALIZED (
        SELECT labels.id, row_number() OVER (ORDER BY labels.items, labels.id) AS rank, count(*) OVER () AS found
        FROM json_array_elements($2::text::json) AS element (value) CROSS JOIN LATERAL (
          SELECT id, items FROM labels
          WHERE bucket_id = $1 AND key = element.value ->> 0 AND labels.value = element.value ->> 1 OFFSET 0
        ) AS labels
      ), place AS MATERIALIZED (
        ${places(idOf(1), (rows) => `(${inOrder(rows)})`)}
      ), item AS MATERIALIZED (
        SELECT item.* FROM place CROSS JOIN LATERAL (SELECT ${itemRowColumns} FROM items WHERE ${ofPlace} OFFSET 0) AS item
        WHERE ${filters.join(' AND ') || 'true'} LIMIT ${wanted}
      )
      SELECT item.*, ${ofPart.text}
      FROM bucket LEFT JOIN (
        SELECT created_at AS time, seq AS number FROM place WHERE (SELECT count(*) FROM item) < ${wanted} ORDER BY ${byTime} LIMIT 1 OFFSET $6 - 1
      ) AS last ON true LEFT JOIN item ON true ORDER BY ${byTime}`,
  }
}
