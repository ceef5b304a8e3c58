import { nameSlot, namesPerRow, type SearchTerms } from '../../core/names.ts'
import { filtersOf, searchFiles, selectsFiles } from './file-search.ts'
import { searchLabels } from './label-search.ts'
import { type SearchBounds, searchNames } from './name-search.ts'
import { searchInOrder, searchList } from './ordered-search.ts'
import type { ItemPlace, ItemRows, ItemSelection } from './records.ts'
import { all, type EngineName, integer, type Query } from './statements.ts'

/** The filters of the indexes of lists, of the index by name, and those with which labels and names are searched. */
const indexed = new Set(['kind', 'from', 'to'])
const indexedByName = new Set(['kind'])
const searched = new Set(['kind', 'from', 'to', 'labels', 'name'])

const hasOther = (selection: ItemSelection, filters: ReadonlySet<string>): boolean =>
  filtersOf(selection).some(([name]) => !filters.has(name))

/** Whether a selection has a filter that the index of its list lacks. Other lists are read with one statement (item-lists.ts). */
export const isSearch = (selection: ItemSelection): boolean =>
  hasOther(selection, selection.by === 'name' ? indexedByName : indexed)

/** Whether a search reads the rows in the order of the list, or the index of files, labels or names. */
function sourceOf(selection: ItemSelection): 'list' | 'files' | 'labels' | 'names' {
  const { by, labels, name } = selection
  if (by != null) return 'list'
  if (selectsFiles(selection)) return 'files'
  if (hasOther(selection, searched) || (labels == null && name === null)) return 'list'
  return labels == null ? 'names' : 'labels'
}

/** Whether a search reads many rows for one that it finds: not if an index alone selects the items. */
export function isLongSearch(selection: ItemSelection): boolean {
  const source = sourceOf(selection)
  if (source === 'files') return filtersOf(selection).length > 1
  if (source === 'labels') return selection.name !== null || Object.keys(selection.labels ?? {}).length > 1
  return isSearch(selection)
}

/** Rows of names that a search compares at most at first, before it is sent to a thread. */
const firstSlots = 32

/** What a search reads at most at first. It takes about as long as a list without filters, if the names are not long. */
const firstBounds: SearchBounds = { numbers: firstSlots * namesPerRow, rows: 2 ** 9, boundsFewItems: true }

/** Items with labels whose names a search compares at most at first. To fold a long name takes tenths of a millisecond. */
const firstNames = 2 ** 6

/** Bytes of names, times the characters of the terms. At each byte, the start of a term can be compared in vain: this many take milliseconds. */
const maxFirstComparisons = 2 ** 20

/** Whether few comparisons pass the names that a search would read at first. To read the lengths takes a fraction of that time. */
function* hasShortNames(
  { bucketId, order }: ItemSelection,
  terms: SearchTerms,
  after: ItemPlace | null,
): Query<boolean> {
  const isNewest = order === 'newest'
  const start = nameSlot(after?.seq ?? (isNewest ? Number.MAX_SAFE_INTEGER : 0))
  // The numbers that are read can begin and end within a row.
  const lengths = yield* all(
    (row) => integer(row, 0),
    `SELECT octet_length(names) FROM item_names WHERE bucket_id = $1 AND slot ${isNewest ? '<=' : '>='} $2
      ORDER BY slot ${isNewest ? 'DESC' : 'ASC'} LIMIT ${firstSlots + 2}`,
    ...[bucketId, start],
  )
  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)
  return sum(lengths) * sum(terms.map((term) => term.length)) <= maxFirstComparisons
}

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
  if (limit > firstBounds.rows) return null
  const source = sourceOf(selection)
  if (source === 'list' || source === 'files') return null
  const { name } = selection
  if (source === 'names' && name !== null && !(yield* hasShortNames(selection, name, after))) return null
  const bounds = source === 'labels' && name !== null ? { ...firstBounds, rows: firstNames } : firstBounds
  const found = yield* searchItems(engine, selection, after, limit, bounds)
  return found.examined === null ? found : null
}

/** Finds items as Catalog.items; to be run in one snapshot. The search throws RangeError for a filter that nothing compares. */
export function searchItems(
  engine: EngineName,
  selection: ItemSelection,
  after: ItemPlace | null,
  limit: number,
  bounds?: SearchBounds,
): Query<ItemRows> {
  const source = sourceOf(selection)
  if (source === 'files') return searchFiles(selection, after, limit)
  if (source === 'labels') return searchLabels(engine, selection, after, limit, bounds?.rows)
  if (source === 'names' && selection.name !== null)
    return searchNames(engine, selection, selection.name, after, limit, bounds)
  return selection.by == null
    ? searchList(selection, after, limit)
    : searchInOrder(engine, selection, after, limit)
}
