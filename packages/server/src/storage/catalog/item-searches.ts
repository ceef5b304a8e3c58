import { searchFiles, selectsFiles } from './file-search.ts'
import { searchLabels } from './label-search.ts'
import { type SearchBounds, searchNames } from './name-search.ts'
import { searchInOrder } from './ordered-search.ts'
import type { ItemPlace, ItemRows, ItemSelection } from './records.ts'
import type { EngineName, Query } from './statements.ts'

/**
 * Whether items are found by their bytes, paths, labels or names, or in a list by name by their times. Other lists are read with one statement
 * (item-lists.ts).
 */
export const isSearch = (selection: ItemSelection): boolean => {
  const { name, labels, by, from, to } = selection
  if (by === 'name' && (from !== null || to !== null)) return true
  return name !== null || labels != null || selectsFiles(selection)
}

/** Whether a search reads many rows for one that it finds: not if an index alone selects the items. */
export function isLongSearch(selection: ItemSelection): boolean {
  const { sha256, path, kind, from, to, name, labels, by } = selection
  if (by != null) return isSearch(selection)
  if (!selectsFiles(selection)) return name !== null || Object.keys(labels ?? {}).length > 1
  return [kind, from, to, name, labels, sha256 == null ? null : path].some((filter) => filter != null)
}

/** What a search reads at most at first, before it is sent to a thread. It takes about as long as a list without filters. */
const firstBounds: SearchBounds = { numbers: 2 ** 13, rows: 2 ** 9 }

/**
 * Tries to find items as Catalog.items within few rows, for an engine that can try at no cost: names and labels that many items have. Returns null
 * if it would read more; to be run in one snapshot.
 */
export function* searchFirst(
  engine: EngineName,
  selection: ItemSelection,
  after: ItemPlace | null,
  limit: number,
): Query<ItemRows | null> {
  if (selection.by != null || selectsFiles(selection) || limit > firstBounds.rows) return null
  const found = yield* searchItems(engine, selection, after, limit, firstBounds)
  return found.examined === null ? found : null
}

/** Finds items as Catalog.items; to be run in one snapshot. */
export function searchItems(
  engine: EngineName,
  selection: ItemSelection,
  after: ItemPlace | null,
  limit: number,
  bounds?: SearchBounds,
): Query<ItemRows> {
  if (selection.by != null) return searchInOrder(engine, selection, after, limit)
  if (selectsFiles(selection)) return searchFiles(selection, after, limit)
  return selection.labels
    ? searchLabels(engine, selection, after, limit, bounds?.rows)
    : searchNames(engine, selection, selection.name ?? [], after, limit, bounds)
}
