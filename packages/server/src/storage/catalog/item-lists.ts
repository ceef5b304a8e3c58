import { bucketDeleted } from '../../core/faults.ts'
import { maxNameKey } from '../../core/names.ts'
import { type ItemFilter, type ItemKind, type ItemOrder, itemKinds } from '../../core/queries.ts'
import { expiredColumn } from './buckets.ts'
import { kindExpression, kindNumber, listExpression, listNumber } from './item-kinds.ts'
import { itemRowColumnCount, itemRowColumns, readItemRow } from './item-rows.ts'
import { isLive } from './items.ts'
import type { BucketId, ItemPlace, ItemRow, ItemRows, ItemSelection } from './records.ts'
import { all, eachEngine, first, integer, type Query, type Row, text } from './statements.ts'

/** A statement that reads the rows of Catalog.items: `itemRowColumns` and, in a list by name, `name_key` as `place`. The first values are the id of the bucket and the time. */
interface ItemStatement extends ListText {
  readonly values: readonly (number | string)[]
}

interface ListText {
  readonly sql: string
  /** The terms of the order. */
  readonly order: string
}

/** Before all times, and after all of them. Milliseconds. */
export const [firstTime, endOfTime] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]

/** Before the keys of all names, and after all of them. */
const [firstName, endOfNames] = ['', '\u{10FFFF}'.repeat(maxNameKey + 1)]

type ListKey = NonNullable<ItemFilter['by']> | null

/** How lists compare and sort. */
export const orders = {
  oldest: { after: '>', until: '<', direction: 'ASC' },
  newest: { after: '<', until: '>=', direction: 'DESC' },
} as const

/**
 * Returns the statements of an engine, whose parameters are `?1` or `$1`. Without a filter the items are in the order of their
 * numbers. With a filter they are in the order of their times. The index on kind and time has the items with and without `taken_at` apart, so
 * that it also has a part of the list by that time; the other part is in an index of its own, as the list by name. The ranges of all kinds are
 * merged. In a list by name, `from` and `to` are not compared.
 */
function createItemStatements(
  mark: '?' | '$',
): (selection: ItemSelection, after: ItemPlace | null, limit: number, now: number) => ItemStatement {
  const rowsOf = (selected: string) =>
    `SELECT ${selected} FROM items WHERE bucket_id = ${mark}1 AND ${isLive(`${mark}2`)}`

  function inNumbers(order: ItemOrder): ListText {
    const { after, direction } = orders[order]
    const byNumber = `seq ${direction}`
    return {
      sql: `${rowsOf(itemRowColumns)} AND seq ${after} ${mark}3 ORDER BY ${byNumber} LIMIT ${mark}4`,
      order: byNumber,
    }
  }

  function inOrder(order: ItemOrder, by: ListKey, kinds: readonly ItemKind[]): ListText {
    const { after, until, direction } = orders[order]
    const terms = `${by === null ? 'created_at' : 'place'} ${direction}, seq ${direction}`
    const range = (key: string, condition: string) =>
      `${rowsOf(by === null ? itemRowColumns : `${itemRowColumns}, ${key} AS place`)} AND ${condition}
        AND (${key}, seq) ${after} (${mark}3, ${mark}4) AND ${key} ${until} ${mark}5`
    const first = (rows: string) => `${rows} ORDER BY ${terms} LIMIT ${mark}6`
    const ranges = kinds.flatMap((kind) => {
      const isOfKind = `${kindExpression} = ${kindNumber(kind)}`
      if (by === 'name') return [range('name_key', isOfKind)]
      return [
        range('created_at', `${listExpression} = ${listNumber(kind, false)}`),
        by === null
          ? range('created_at', `${listExpression} = ${listNumber(kind, true)}`)
          : range('taken_at', `${isOfKind} AND taken_at IS NOT NULL`),
      ]
    })
    // SQLite merges ordered ranges as they are read. PostgreSQL sorts them, so it gets only the first rows of each.
    const parts = mark === '?' || ranges.length === 1 ? ranges : ranges.map((rows) => `(${first(rows)})`)
    return { sql: first(parts.join(' UNION ALL ')), order: terms }
  }

  const texts = new Map<string, ListText>()
  function textOf({ order, kind }: ItemSelection, by: ListKey, isFiltered: boolean): ListText {
    const key = `${order} ${isFiltered ? (kind ?? 'any') : ''} ${by}`
    const found =
      texts.get(key) ??
      (isFiltered ? inOrder(order, by, kind === null ? itemKinds : [kind]) : inNumbers(order))
    texts.set(key, found)
    return found
  }

  return (selection, after, limit, now) => {
    const { bucketId, order, kind, from, to, by = null } = selection
    const isOldest = order === 'oldest'
    const isFiltered = kind !== null || from !== null || to !== null || by !== null
    const text = textOf(selection, by, isFiltered)
    if (!isFiltered)
      return { ...text, values: [bucketId, now, after?.seq ?? (isOldest ? -1 : endOfTime), limit] }
    const [first, last] = by === 'name' ? [firstName, endOfNames] : [from ?? firstTime, to ?? endOfTime]
    const [start, end] = isOldest ? [first, last] : [last, first]
    const place = by === 'name' ? after?.name : after?.createdAt
    return { ...text, values: [bucketId, now, place ?? start, after?.seq ?? -1, end, limit] }
  }
}

/** The statements of each engine. */
export const itemStatements = { sqlite: createItemStatements('?'), postgres: createItemStatements('$') }

/** Where the key of the name is in a row of a list by name. */
export const nameKeyPlace = itemRowColumnCount

/** Reads a row of a list from `itemRowColumns` and, in a list by name, the key of the name. */
export const readListRow =
  ({ by }: Pick<ItemSelection, 'by'>) =>
  (row: Row): ItemRow =>
    by === 'name' ? { ...readItemRow(row), nameKey: text(row, nameKeyPlace) } : readItemRow(row)

const bucketState = eachEngine(
  (engine) => `SELECT revision, ${expiredColumn(engine, '$2')} FROM buckets WHERE id = $1`,
)

/** The revision of a bucket and its items that have expired by `now`, as in Grant. Throws Fault `token-revoked` if there is no such bucket. */
export function* readBucketState(
  bucketId: BucketId,
  now: number,
): Query<Pick<ItemRows, 'revision' | 'expired'>> {
  const state = yield* first(
    (row) => ({ revision: integer(row, 0), expired: integer(row, 1) }),
    bucketState,
    ...[bucketId, now],
  )
  if (state === null) throw bucketDeleted()
  return state
}

/** The most expired items of a bucket by which the statement of a list may pass (ordered-search.ts). */
export const maxPassed = 1_000

/**
 * Reads the rows of a list as Catalog.items on SQLite; to be run in one snapshot. PostgreSQL reads them with the bucket in one statement. Null if
 * it might pass by many expired items.
 */
export function* listOnSqlite(
  selection: ItemSelection,
  after: ItemPlace | null,
  limit: number,
): Query<ItemRows | null> {
  const now = Date.now()
  const bucket = yield* readBucketState(selection.bucketId, now)
  if (bucket.expired > maxPassed) return null
  const { sql, values } = itemStatements.sqlite(selection, after, limit, now)
  return { ...bucket, rows: yield* all(readListRow(selection), sql, ...values), examined: null }
}

/** The place of an item in a list. Its key of the name is that of the index, so that the list continues at the same entry. */
export const placeOf = (
  { by = null }: Pick<ItemSelection, 'by'>,
  { seq, item, nameKey }: ItemRow,
): ItemPlace => ({
  seq,
  createdAt: by === 'taken' ? (item.takenAt ?? item.createdAt) : item.createdAt,
  path: item.path ?? null,
  ...(nameKey === undefined ? {} : { name: nameKey }),
})
