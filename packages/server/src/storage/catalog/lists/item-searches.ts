import { Fault } from '../../../core/faults.ts'
import type { BucketId, ItemPlace, ItemRow, ItemRows, ItemSelection } from '../records.ts'
import type { EngineName, Query } from '../statements.ts'
import { createHashSource } from './hash-source.ts'
import { createFilter, hasOtherFilter } from './item-filters.ts'
import { createItemSource, type ItemIndex, itemIndexes, placeOf, readAtOnce } from './item-lists.ts'
import { type Bounds, type Source, scan } from './item-scan.ts'
import { createKeySource } from './key-source.ts'
import { createLabelSource } from './label-source.ts'
import { createNameSource, hasShortNames } from './name-source.ts'

const hasTimes = ({ from, to }: ItemSelection): boolean => from !== null || to !== null

/** The index of `items` that has the order of a list (K2, K9, K12, K14, K16, K17, K19, K20). */
function indexOf(selection: ItemSelection): ItemIndex {
  const { by, sha256, path, labels, name, kind } = selection
  if (by != null) return by
  if (sha256 != null) return 'hash'
  if (path != null) return 'path'
  if (labels != null) return 'stored'
  if (name === null && (kind !== null || hasTimes(selection))) return 'stored'
  // Any other list: all items in the order of their numbers.
  return 'number'
}

/** Chooses the source of a list among those in its order. The last one has all items, so that any filter can be compared with them. */
function sourceOf(engine: EngineName, selection: ItemSelection): Source {
  const { labels, name, key } = selection
  if (key != null) return createKeySource(selection)
  const index = indexOf(selection)
  if (index === 'stored' && labels != null) return createLabelSource(selection)
  if (index === 'number' && name !== null) return createNameSource(engine, selection, name)
  return index === 'hash' && engine === 'sqlite'
    ? createHashSource(selection)
    : createItemSource(engine, index, selection)
}

/** Indexes that have lists of whole buckets. */
const wholeLists: ReadonlySet<ItemIndex> = new Set(['number', 'stored', 'taken', 'name'])

/** Whether a selection has a filter that the index of its list lacks. Other lists can be read with one statement (listAtOnce). */
export function isSearch(selection: ItemSelection): boolean {
  if (selection.key != null) return true
  const index = indexOf(selection)
  return !wholeLists.has(index) || hasOtherFilter(selection, itemIndexes[index].compared)
}

/** Whether a search reads many rows for one that it finds: not if an index alone selects the items. */
export function isLongSearch(selection: ItemSelection): boolean {
  const { isSparse, compared } = sourceOf('sqlite', selection)
  return isSparse || hasOtherFilter(selection, compared)
}

/** What one search reads at most; fewer rows if no filter makes it long, and if it folds the names of items with labels. */
const longBounds: Bounds = { rows: 2 ** 16, numbers: 2 ** 20, comparisons: 2 ** 28 }
const shortBounds: Bounds = { ...longBounds, rows: 2 ** 13 }

/** Finds items as Catalog.items; to be run in one snapshot. Throws RangeError for a filter that nothing compares. */
export function searchItems(
  engine: EngineName,
  selection: ItemSelection,
  after: ItemPlace | null,
  limit: number,
  bounds: Partial<Bounds> = {},
): Query<ItemRows> {
  const source = sourceOf(engine, selection)
  const filter = createFilter(selection, source.compared)
  const foldsNames = source.compared.has('labels') && selection.name !== null
  const isLong = !foldsNames && (source.isSparse || filter !== null)
  const within = { ...(isLong ? longBounds : shortBounds), ...bounds }
  return selection.by == null || filter === null
    ? scan(source, filter, after, limit, within)
    : scanOrSort(engine, selection, after, limit, within)
}

/** Reads a list as Catalog.items on PostgreSQL, in one round trip. Null if expired items are in the way. */
export const listAtOnce = (
  selection: ItemSelection,
  after: ItemPlace | null,
  limit: number,
): Query<ItemRows | null> => readAtOnce(indexOf(selection), selection, after, limit)

/** What a search reads at most at first, before it is sent to a thread. It takes about as long as a list without filters, if the names are not long. */
const firstBounds: Bounds = { ...longBounds, numbers: 2 ** 10, rows: 2 ** 9, boundsFewItems: true }

/** Items with labels whose names a search compares at most at first. To fold a long name takes tenths of a millisecond. */
const firstNames = 2 ** 6

/** The filters of searches that are tried first: names and labels that many items have. */
const triedFirst: ReadonlySet<string> = new Set(['kind', 'from', 'to', 'labels', 'name'])

/**
 * Tries to find items as Catalog.items within few rows, for an engine that can try at no cost. Returns null if it would read more; to be run in one
 * snapshot.
 */
export function* searchFirst(
  engine: EngineName,
  selection: ItemSelection,
  after: ItemPlace | null,
  limit: number,
): Query<ItemRows | null> {
  const { by, labels, name } = selection
  if (limit > firstBounds.rows || by != null || hasOtherFilter(selection, triedFirst)) return null
  if (labels == null && name === null) return null
  const isByName = labels == null && name !== null
  if (isByName && !(yield* hasShortNames(selection, name, after, firstBounds.numbers))) return null
  const rows = labels != null && name !== null ? firstNames : firstBounds.rows
  const found = yield* searchItems(engine, selection, after, limit, { ...firstBounds, rows })
  return found.examined === null ? found : null
}

/** Items that one search sorts at most. */
const maxSorted = 2 ** 13

/** Sequence numbers whose names are compared in the time in which a row is read. */
const numbersPerRow = 2 ** 7

/**
 * Scans a list by name or by the time at which items were taken whose filters its index lacks. They have indexes of their own, in other orders: if one
 * of these selects few items, the items are sorted. How many they select is not known, so both ways are tried in turn, with more and more rows.
 */
function* scanOrSort(
  engine: EngineName,
  selection: ItemSelection,
  after: ItemPlace | null,
  limit: number,
  bounds: Bounds,
): Query<ItemRows> {
  const scanFrom = (source: Source, place: ItemPlace | null, limit: number, bounds: Bounds) =>
    scan(source, createFilter(selection, source.compared), place, limit, bounds)
  const source = sourceOf(engine, selection)
  const others = otherSources(engine, selection)
  const rows: ItemRow[] = []
  let place = after
  let left = bounds.rows
  for (let part = limit * 4; ; part *= 4) {
    const count = Math.min(part, left)
    const found = yield* scanFrom(source, place, limit - rows.length, { ...bounds, rows: count })
    rows.push(...found.rows)
    left -= count
    if (found.examined === null || left <= 0) return { ...found, rows }
    const most = Math.min(part, maxSorted)
    for (const other of others) {
      const few = { ...bounds, rows: most, numbers: most * numbersPerRow }
      const all = yield* scanFrom(other, null, most + 1, few)
      if (all.examined === null && all.rows.length <= most)
        return { ...all, rows: sorted(selection, after, all.rows).slice(0, limit) }
    }
    place = found.examined
  }
}

/** The sources in other orders that may have few items of a selection. */
function otherSources(engine: EngineName, selection: ItemSelection): readonly Source[] {
  const { by, sha256, path, labels, name } = selection
  const isByName = by === 'name'
  const whole: ItemSelection = {
    ...selection,
    ...{ order: 'oldest', by: null },
    // Other indexes have the times of uploads.
    ...(!isByName && { from: null, to: null }),
  }
  const sources = [
    ...(sha256 != null
      ? [engine === 'sqlite' ? createHashSource(whole, by) : createItemSource(engine, 'hash', whole, by)]
      : []),
    ...(path != null && sha256 == null ? [createItemSource(engine, 'path', whole, by)] : []),
    ...(labels != null ? [createLabelSource(whole, by)] : []),
    ...(isByName && hasTimes(selection) ? [createItemSource(engine, 'stored', whole, by)] : []),
  ]
  if (sources.length > 0 || name === null) return sources
  return [createNameSource(engine, whole, name, by)]
}

interface SortedPlace extends ItemPlace {
  /** The key of the name in UTF-8, whose bytes both engines compare. Encoded once, because a key is compared many times. */
  readonly encoded: Buffer
}

const sortedPlace = (place: ItemPlace): SortedPlace => ({
  ...place,
  encoded: Buffer.from(place.name ?? ''),
})

/** The rows of a selection after a place, in its order. */
function sorted(
  selection: ItemSelection,
  after: ItemPlace | null,
  rows: ItemRows['rows'],
): readonly ItemRow[] {
  const { order, by } = selection
  const sign = order === 'oldest' ? 1 : -1
  const compare = (one: SortedPlace, other: SortedPlace) =>
    sign *
    ((by === 'name' ? Buffer.compare(one.encoded, other.encoded) : one.createdAt - other.createdAt) ||
      one.seq - other.seq)
  const start = after && sortedPlace(after)
  return rows
    .map((row) => ({ row, place: sortedPlace(placeOf(selection, row)) }))
    .filter(({ place }) => start === null || compare(place, start) > 0)
    .toSorted((one, other) => compare(one.place, other.place))
    .map(({ row }) => row)
}

/** Searches that wait for others, of all buckets and of one; more are refused. */
const [maxWaiting, maxWaitingOfBucket] = [100, 50]

/** Runs up to `running` searches at a time. Buckets take turns. Throws Fault `overloaded` if too many wait. */
export function createSearchQueue(
  running: number,
): <T>(bucketId: BucketId, search: () => Promise<T>) => Promise<T> {
  /** In the order of their turns. No list is empty. */
  const waiting = new Map<BucketId, (() => void)[]>()
  let count = 0
  let free = running

  function wait(bucketId: BucketId): Promise<void> {
    const own = waiting.get(bucketId) ?? []
    if (count >= maxWaiting || own.length >= maxWaitingOfBucket)
      throw new Fault('overloaded', 'Too many searches are waiting; try again.')
    count += 1
    waiting.set(bucketId, own)
    return new Promise((resolve) => own.push(resolve))
  }

  function next(): void {
    const [turn] = waiting
    if (turn === undefined) {
      free += 1
      return
    }
    const [bucketId, [begin, ...others]] = turn
    waiting.delete(bucketId)
    if (others.length > 0) waiting.set(bucketId, others)
    count -= 1
    begin?.()
  }

  return async (bucketId, search) => {
    if (free > 0) free -= 1
    else await wait(bucketId)
    try {
      return await search()
    } finally {
      next()
    }
  }
}
