import { createFilter, searchFiles, searchRows, selectsFiles } from './file-search.ts'
import { itemStatements, placeOf } from './item-lists.ts'
import { searchLabels } from './label-search.ts'
import { searchNames } from './name-search.ts'
import type { ItemPlace, ItemRows, ItemSelection } from './records.ts'
import { type EngineName, eachEngine, type Query } from './statements.ts'

/** Rows that one search reads at most in the order of time. At the bound it ends early, and its rows say where. */
const defaultBound = 2 ** 16

/** Items that one search sorts at most. */
const maxSorted = 2 ** 13

/** Sequence numbers whose names are compared in the time in which a row is read. */
const numbersPerRow = 2 ** 7

/**
 * Finds up to `limit` items by the time at which they were taken, as Catalog.items; to be run in one snapshot. The rows are read in this order,
 * and compared afterwards. Names, labels, bytes and paths have indexes of their own, in other orders: if these select few items, the items are
 * sorted. How many they select is not known, so both ways are tried in turn, with more and more rows.
 */
export function* searchInTime(
  engine: EngineName,
  selection: ItemSelection,
  after: ItemPlace | null,
  limit: number,
  bound = defaultBound,
): Query<ItemRows> {
  const reads = {
    statementOf: (place: ItemPlace | null, batch: number, now: number) => ({
      sql: eachEngine((engine) => itemStatements[engine](selection, place, batch, now).sql),
      values: itemStatements.sqlite(selection, place, batch, now).values,
    }),
    isWanted: createFilter({ ...selection, kind: null, from: null, to: null }),
    placeOf: (row: ItemRows['rows'][number]) => placeOf(selection, row),
  }
  const rows: ItemRows['rows'][number][] = []
  let place = after
  let left = bound
  for (let part = limit * 4; ; part *= 4) {
    const count = Math.min(part, left)
    const found = yield* searchRows(selection.bucketId, place, limit - rows.length, count, reads)
    rows.push(...found.rows)
    left -= count
    if (found.examined === null || left <= 0) return { ...found, rows }
    const selected = yield* readSelected(engine, selection, Math.min(part, maxSorted))
    if (selected !== null)
      return { ...selected, rows: inTime(selection, after, selected.rows).slice(0, limit) }
    place = found.examined
  }
}

/** Reads all items that a selection has at any time, in any order, from one of its indexes. Returns null if it would read more than `bound` rows. */
function* readSelected(engine: EngineName, selection: ItemSelection, bound: number): Query<ItemRows | null> {
  const all: ItemSelection = { ...selection, order: 'oldest', by: null, from: null, to: null }
  const { name, labels } = all
  const isWanted = createFilter(all)
  const searches = [
    ...(selectsFiles(all) ? [searchFiles(all, null, bound + 1, bound)] : []),
    ...(labels ? [searchLabels(engine, all, null, bound + 1, bound)] : []),
  ]
  if (searches.length === 0 && name !== null)
    searches.push(searchNames(all, name, null, bound + 1, { numbers: bound * numbersPerRow, rows: bound }))
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
