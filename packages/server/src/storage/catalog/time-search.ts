import { createFilter, searchFiles, searchRows, selectsFiles } from './file-search.ts'
import { itemStatements, placeOf } from './item-lists.ts'
import { searchLabels } from './label-search.ts'
import { searchNames } from './name-search.ts'
import type { ItemPlace, ItemRows, ItemSelection } from './records.ts'
import { eachEngine, first, integer, type Query } from './statements.ts'

/** Rows that one search reads at most in the order of time. At the bound it ends early, and its rows say where. */
const defaultBound = 2 ** 16

/** Rows that one search sorts at most, and sequence numbers whose names it compares at most before that. */
const [maxSorted, maxNumbers] = [2 ** 13, 2 ** 20]

/**
 * Finds up to `limit` items by the time at which they were taken, as Catalog.items; to be run in one snapshot. Names, labels, bytes and paths
 * have indexes of their own, which are in other orders. If these select few items, the items are sorted. Otherwise the rows are
 * read in the order of time, and compared afterwards.
 */
export function* searchInTime(
  selection: ItemSelection,
  after: ItemPlace | null,
  limit: number,
  bound = defaultBound,
): Query<ItemRows> {
  const { bucketId } = selection
  const total = yield* first((row) => integer(row, 0), 'SELECT total FROM buckets WHERE id = $1', bucketId)
  // With this many selected items in a bucket, a search in the order of time reads about as many rows for a response.
  const few = Math.min(maxSorted, Math.ceil(Math.sqrt((total ?? 0) * limit)))
  const selected = yield* readSelected(selection, few)
  if (selected !== null) return { ...selected, rows: inTime(selection, after, selected.rows).slice(0, limit) }
  return yield* searchRows(bucketId, after, limit, bound, {
    statementOf: (place, batch, now) => ({
      sql: eachEngine((engine) => itemStatements[engine](selection, place, batch, now).sql),
      values: itemStatements.sqlite(selection, place, batch, now).values,
    }),
    isWanted: createFilter({ ...selection, kind: null, from: null, to: null }),
    placeOf: (row) => placeOf(selection, row),
  })
}

/** Reads all items that a selection has at any time, in any order, from one of its indexes. Returns null if it would read more than `bound` rows. */
function* readSelected(selection: ItemSelection, bound: number): Query<ItemRows | null> {
  const all: ItemSelection = { ...selection, order: 'oldest', by: null, from: null, to: null }
  const { name, labels } = all
  const isWanted = createFilter(all)
  const searches = [
    ...(selectsFiles(all) ? [searchFiles(all, null, bound + 1, bound)] : []),
    ...(labels ? [searchLabels(all, null, bound + 1, bound)] : []),
  ]
  if (searches.length === 0 && name !== null)
    searches.push(searchNames(all, name, null, bound + 1, { numbers: maxNumbers, rows: bound }))
  for (const search of searches) {
    const found = yield* search
    if (found.examined === null && found.rows.length <= bound)
      return { ...found, rows: found.rows.filter(({ item }) => isWanted(item)) }
  }
  return null
}

/** The rows of a selection after a place, in its order. */
function inTime(selection: ItemSelection, after: ItemPlace | null, rows: ItemRows['rows']): ItemRows['rows'] {
  const { order, from, to } = selection
  const sign = order === 'oldest' ? 1 : -1
  const compare = (one: ItemPlace, other: ItemPlace) =>
    sign * (one.createdAt - other.createdAt || one.seq - other.seq)
  return rows
    .map((row) => ({ row, place: placeOf(selection, row) }))
    .filter(
      ({ place }) =>
        (from === null || place.createdAt >= from) &&
        (to === null || place.createdAt < to) &&
        (after === null || compare(place, after) > 0),
    )
    .toSorted((one, other) => compare(one.place, other.place))
    .map(({ row }) => row)
}
