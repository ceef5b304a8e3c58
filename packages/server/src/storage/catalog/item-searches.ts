import { nameSlot, namesPerRow } from '../../core/names.ts'
import { searchFiles, selectsFiles } from './file-search.ts'
import { searchLabels } from './label-search.ts'
import { type SearchBounds, searchNames } from './name-search.ts'
import { searchInOrder, searchList } from './ordered-search.ts'
import type { ItemPlace, ItemRows, ItemSelection } from './records.ts'
import { all, type EngineName, integer, type Query } from './statements.ts'

/**
 * Whether a selection has a filter that the index of its list lacks. Other lists are read with one statement (item-lists.ts). The index by name
 * lacks the times.
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
  terms: readonly string[],
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
  const { name, labels, by } = selection
  if (by != null || selectsFiles(selection) || limit > firstBounds.rows) return null
  if (!labels && !(yield* hasShortNames(selection, name ?? [], after))) return null
  const bounds = labels && name !== null ? { ...firstBounds, rows: firstNames } : firstBounds
  const found = yield* searchItems(engine, selection, after, limit, bounds)
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
  if (selection.labels) return searchLabels(engine, selection, after, limit, bounds?.rows)
  if (selection.name !== null) return searchNames(engine, selection, selection.name, after, limit, bounds)
  return searchList(selection, after, limit)
}
