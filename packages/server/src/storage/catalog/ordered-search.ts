import { readAfterNumber } from './expired-items.ts'
import { createFilter, searchFiles, searchRows, selectsFiles } from './file-search.ts'
import { itemStatements, placeOf, readBucketState, readListRow } from './item-lists.ts'
import { itemRowColumns, readItemRow } from './item-rows.ts'
import { searchLabels } from './label-search.ts'
import { searchNames } from './name-search.ts'
import type { BucketId, ItemPlace, ItemRow, ItemRows, ItemSelection } from './records.ts'
import { all, type EngineName, eachEngine, integer, type Query, text } from './statements.ts'

/** Rows that one search reads at most in the order of its list. At the bound it ends early, and its rows say where. */
const defaultBound = 2 ** 16

/** Items that one search sorts at most. */
const maxSorted = 2 ** 13

/** The part of a selection that has any time. */
const anyTime = { from: null, to: null } as const

/** Sequence numbers whose names are compared in the time in which a row is read. */
const numbersPerRow = 2 ** 7

/**
 * Finds up to `limit` items by name or by the time at which they were taken, as Catalog.items; to be run in one snapshot. The rows are read in
 * this order, and compared afterwards. Names, labels, bytes and paths, and in a list by name the times of uploads, have indexes of their own, in
 * other orders: if these select few items, the items are sorted. How many they select is not known, so both ways are tried in turn, with more and more rows.
 */
export function* searchInOrder(
  engine: EngineName,
  selection: ItemSelection,
  after: ItemPlace | null,
  limit: number,
  bound = defaultBound,
): Query<ItemRows> {
  const reads = readsOf(selection)
  const rows: ItemRow[] = []
  let place = after
  let left = bound
  for (let part = limit * 4; ; part *= 4) {
    const count = Math.min(part, left)
    const found = yield* searchRows(selection.bucketId, place, limit - rows.length, count, reads)
    rows.push(...found.rows)
    left -= count
    if (found.examined === null || left <= 0) return { ...found, rows }
    const selected = yield* readSelected(engine, selection, Math.min(part, maxSorted))
    if (selected !== null) {
      const keyed =
        selection.by === 'name' ? yield* withKeys(selection.bucketId, selected.rows) : selected.rows
      return { ...selected, rows: inOrder(selection, after, keyed).slice(0, limit) }
    }
    place = found.examined
  }
}

/** Rows that a list without other filters reads at most, if items of its bucket have expired. It takes some tens of milliseconds. */
const listBound = 2 ** 13

/**
 * Reads the rows of a list as Catalog.items in a bucket with many expired items; to be run in one snapshot. Without filters it passes by those that are
 * counted; otherwise it ends early as a search does.
 */
export function* listPastExpired(
  engine: EngineName,
  selection: ItemSelection,
  after: ItemPlace | null,
  limit: number,
): Query<ItemRows> {
  const { bucketId, order, kind, from, to, by = null } = selection
  if (kind === null && from === null && to === null && by === null) {
    const now = Date.now()
    const bucket = yield* readBucketState(bucketId, now)
    const rows = yield* readAfterNumber(
      ...([engine, bucketId, order === 'oldest', after?.seq ?? null, limit, now] as const),
      ...([itemRowColumns, readItemRow] as const),
    )
    if (rows !== null) return { ...bucket, rows, examined: null }
  }
  return yield* searchRows(bucketId, after, limit, listBound, { ...readsOf(selection), isWanted: () => true })
}

/** Finds items by filters without an index, in the order of their list, as Catalog.items; to be run in one snapshot. */
export const searchList = (
  selection: ItemSelection,
  after: ItemPlace | null,
  limit: number,
): Query<ItemRows> => searchRows(selection.bucketId, after, limit, defaultBound, readsOf(selection))

/** Reads the rows of a list from the index in its order. */
const readsOf = (selection: ItemSelection) => ({
  statementOf: (place: ItemPlace | null, batch: number, now: number) => ({
    sql: eachEngine((engine) => itemStatements[engine](selection, place, batch, now).sql),
    values: itemStatements.sqlite(selection, place, batch, now).values,
  }),
  readRow: readListRow(selection),
  // The index selects the kinds, and the times if they are in its key.
  isWanted: createFilter({ ...selection, kind: null, ...(selection.by !== 'name' && anyTime) }),
  placeOf: (row: ItemRow) => placeOf(selection, row),
})

/** Reads all items that a selection has at any place, in any order, from one of its indexes. Returns null if it would read more than `bound` rows. */
function* readSelected(engine: EngineName, selection: ItemSelection, bound: number): Query<ItemRows | null> {
  const isByName = selection.by === 'name'
  const whole: ItemSelection = { ...selection, ...(!isByName && anyTime), order: 'oldest', by: null }
  const { name, labels } = whole
  const isWanted = createFilter(whole)
  const searches = [
    ...(selectsFiles(whole) ? [searchFiles(whole, null, bound + 1, bound)] : []),
    ...(labels ? [searchLabels(engine, whole, null, bound + 1, bound)] : []),
  ]
  if (isByName && (whole.from !== null || whole.to !== null))
    searches.push(searchRows(whole.bucketId, null, bound + 1, bound, readsOf(whole)))
  if (searches.length === 0 && name !== null)
    searches.push(
      searchNames(engine, whole, name, null, bound + 1, { numbers: bound * numbersPerRow, rows: bound }),
    )
  for (const search of searches) {
    const found = yield* search
    if (found.examined === null && found.rows.length <= bound)
      return { ...found, rows: found.rows.filter(({ item }) => isWanted(item)) }
  }
  return null
}

/** Reads the stored keys of the names of rows. */
function* withKeys(bucketId: BucketId, rows: readonly ItemRow[]): Query<readonly ItemRow[]> {
  const keys = new Map(
    yield* all(
      (row) => [integer(row, 0), text(row, 1)] as const,
      'SELECT seq, name_key FROM items WHERE bucket_id = $1 AND seq = ANY ($2::int8[])',
      ...[bucketId, rows.map(({ seq }) => seq)],
    ),
  )
  return rows.map((row) => ({ ...row, nameKey: keys.get(row.seq) ?? '' }))
}

/** The rows of a selection after a place, in its order. */
function inOrder(
  selection: ItemSelection,
  after: ItemPlace | null,
  rows: ItemRows['rows'],
): ItemRows['rows'] {
  const { order, by, from, to } = selection
  const sign = order === 'oldest' ? 1 : -1
  const compare = (one: SortedPlace, other: SortedPlace) =>
    sign *
    ((by === 'name' ? Buffer.compare(one.key, other.key) : one.createdAt - other.createdAt) ||
      one.seq - other.seq)
  const start = after && sortedPlace(after)
  return rows
    .map((row) => ({ row, place: sortedPlace(placeOf(selection, row)) }))
    .filter(
      ({ place }) =>
        (from === null || place.createdAt >= from) &&
        (to === null || place.createdAt < to) &&
        (start === null || compare(place, start) > 0),
    )
    .toSorted((one, other) => compare(one.place, other.place))
    .map(({ row }) => row)
}

interface SortedPlace extends ItemPlace {
  /** The key of the name in UTF-8, whose bytes both engines compare. Encoded once, because a key is compared many times. */
  readonly key: Buffer
}

const sortedPlace = (place: ItemPlace): SortedPlace => ({ ...place, key: Buffer.from(place.name ?? '') })
