import { bucketDeleted } from '../../core/faults.ts'
import { nameLine } from '../../core/names.ts'
import { type ItemOrder, itemKinds } from '../../core/queries.ts'
import { kindNumber } from './item-kinds.ts'
import { expiredColumn, isLive, itemColumnCount, itemColumns, readItemDetails } from './items.ts'
import type { BucketId, ItemPlace, ItemRows, ItemSelection } from './records.ts'
import { all, eachEngine, first, integer, type Query, type Sql, textOrNull } from './statements.ts'

/** Rows of the rarest label that one search reads at most, also if it compares names. At the bound it ends early, and its rows say where. */
const [maxRows, maxNames] = [2 ** 16, 2 ** 13]

/** Rows that are read together at most. */
const largestBatch = 8_192

/** Before all times, and after all of them. Milliseconds. */
const [firstTime, endOfTime] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]

const orders = {
  oldest: { after: '>', until: '<', direction: 'ASC' },
  newest: { after: '<', until: '>=', direction: 'DESC' },
} as const

/**
 * Finds up to `limit` items that have all labels, as Catalog.items; to be run in one snapshot. The rows of the rarest label are read from the
 * index, in the order of their times. Those that have the other labels are items to be read.
 */
export function* searchLabels(
  selection: ItemSelection,
  after: ItemPlace | null,
  limit: number,
  bound = selection.name === null ? maxRows : maxNames,
): Query<ItemRows> {
  const { bucketId, order, kind, from, to, name } = selection
  const now = Date.now()
  const bucket = yield* first(
    (row) => ({ revision: integer(row, 0), expired: integer(row, 1) }),
    `SELECT revision, ${expiredColumn('$2')} FROM buckets WHERE id = $1`,
    ...[bucketId, now],
  )
  if (bucket === null) throw bucketDeleted()

  const wanted = Object.entries(selection.labels ?? {})
  const labels = yield* all((row) => integer(row, 0), labelIds, bucketId, JSON.stringify(wanted))
  const [rarest, ...others] = labels
  if (rarest === undefined || labels.length < wanted.length) return { ...bucket, rows: [], examined: null }

  const [start, end] =
    order === 'oldest' ? [from ?? firstTime, to ?? endOfTime] : [to ?? endOfTime, from ?? firstTime]
  const rowsOfItems = itemRows(order)
  const places = indexRows(order, kind === null, others.length)
  const kindValues = kind === null ? [] : [kindNumber(kind)]
  const rows: ItemRows['rows'][number][] = []
  let place: ItemPlace = after ?? { createdAt: start, seq: -1 }
  let left = bound
  let batch = limit
  while (rows.length < limit) {
    const read = yield* all(
      (row) => ({ createdAt: integer(row, 0), seq: integer(row, 1), isFound: integer(row, 2) === 1 }),
      places,
      ...[bucketId, rarest, place.createdAt, place.seq, end, batch, ...kindValues, ...others],
    )
    const labelled = read.flatMap(({ seq, isFound }) => (isFound ? [seq] : []))
    const seqs = name === null ? labelled : yield* named(bucketId, labelled, name)
    if (seqs.length > 0)
      rows.push(
        ...(yield* all(
          (row) => ({ seq: integer(row, itemColumnCount), item: readItemDetails(row) }),
          rowsOfItems,
          ...[bucketId, seqs, now, limit - rows.length],
        )),
      )
    const last = read.at(-1)
    if (last === undefined || read.length < batch) break
    place = last
    left -= read.length
    if (left <= 0 && rows.length < limit) return { ...bucket, rows, examined: place }
    batch = Math.min(batch * 4, largestBatch)
  }
  return { ...bucket, rows, examined: null }
}

/** The ids of the given labels, rarest first. */
const labelIds = eachEngine((engine) => {
  const wanted =
    engine === 'sqlite' ? 'json_each($2) AS wanted' : 'json_array_elements($2::text::json) AS wanted (value)'
  return `SELECT labels.id FROM ${wanted} JOIN labels
    ON labels.bucket_id = $1 AND labels.key = wanted.value ->> 0 AND labels.value = wanted.value ->> 1
    ORDER BY labels.items, labels.id`
})

/** Reads rows of a label in their order: time, number, and 1 if the item has the other labels. */
function indexRows(order: ItemOrder, isAnyKind: boolean, others: number): Sql {
  const { after, until, direction } = orders[order]
  const byTime = `created_at ${direction}, seq ${direction}`
  const ofKind = (kind: string) => `SELECT kind, created_at, seq FROM item_labels
    WHERE bucket_id = $1 AND label_id = $2 AND kind = ${kind}
      AND (created_at, seq) ${after} ($3, $4) AND created_at ${until} $5`
  const hasOthers = Array.from(
    { length: others },
    (_, index) => `EXISTS (SELECT 1 FROM item_labels AS other WHERE other.bucket_id = $1
      AND other.label_id = $${index + (isAnyKind ? 7 : 8)} AND other.kind = part.kind
      AND other.created_at = part.created_at AND other.seq = part.seq)`,
  )
  return eachEngine((engine) => {
    const inOrder = (rows: string) => `${rows} ORDER BY ${byTime} LIMIT $6`
    // As in item-lists.ts: SQLite merges ordered ranges as they are read, PostgreSQL sorts the first rows of each.
    const ranges = itemKinds.map((kind) => {
      const range = ofKind(`${kindNumber(kind)}`)
      return engine === 'sqlite' ? range : `(${inOrder(range)})`
    })
    const part = inOrder(isAnyKind ? ranges.join(' UNION ALL ') : ofKind('$7'))
    return `SELECT created_at, seq, CAST(${hasOthers.join(' AND ') || 'true'} AS int) FROM (${part}) AS part ORDER BY ${byTime}`
  })
}

/** Those of the numbers whose items have all terms in their names. */
function* named(bucketId: BucketId, seqs: readonly number[], terms: readonly string[]): Query<number[]> {
  const names = yield* all(
    (row) => ({ seq: integer(row, 0), name: nameLine(textOrNull(row, 1)) }),
    'SELECT seq, filename FROM items WHERE bucket_id = $1 AND seq = ANY ($2::int8[])',
    ...[bucketId, seqs],
  )
  return names.flatMap(({ seq, name }) => (terms.every((term) => name.includes(term)) ? [seq] : []))
}

/** Reads the items with these numbers. */
function itemRows(order: ItemOrder): Sql {
  const { direction } = orders[order]
  // Materialized, because PostgreSQL would otherwise read the bucket in order, up to the limit.
  return `WITH item AS MATERIALIZED (SELECT ${itemColumns}, seq FROM items
      WHERE bucket_id = $1 AND seq = ANY ($2::int8[]) AND ${isLive('$3')})
    SELECT * FROM item ORDER BY created_at ${direction}, seq ${direction} LIMIT $4`
}
