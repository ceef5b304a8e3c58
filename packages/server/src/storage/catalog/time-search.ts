import { createFilter, searchRows } from './file-search.ts'
import { itemStatements, placeOf } from './item-lists.ts'
import type { ItemPlace, ItemRows, ItemSelection } from './records.ts'
import { eachEngine, type Query } from './statements.ts'

/** Rows that one search reads at most in the order of time. At the bound it ends early, and its rows say where. */
const defaultBound = 2 ** 16

/**
 * Finds up to `limit` items by the time at which they were taken, as Catalog.items; to be run in one snapshot. The rows are read in this
 * order. Names, labels, bytes and paths are compared afterwards.
 */
export const searchInTime = (
  selection: ItemSelection,
  after: ItemPlace | null,
  limit: number,
  bound = defaultBound,
): Query<ItemRows> =>
  searchRows(selection.bucketId, after, limit, bound, {
    statementOf: (place, batch, now) => ({
      sql: eachEngine((engine) => itemStatements[engine](selection, place, batch, now).sql),
      values: itemStatements.sqlite(selection, place, batch, now).values,
    }),
    isWanted: createFilter({ ...selection, kind: null, from: null, to: null }),
    placeOf: (row) => placeOf(selection, row),
  })
