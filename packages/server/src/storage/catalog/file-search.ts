import { afterPaths, containsAll, nameLine } from '../../core/names.ts'
import type { ItemOrder } from '../../core/queries.ts'
import { type ItemMember, itemPlaces } from './item-columns.ts'
import { kindNumber, kindNumberOf } from './item-kinds.ts'
import { orders, readBucketState } from './item-lists.ts'
import { itemRowColumns, readItemRow } from './item-rows.ts'
import { isLive } from './items.ts'
import type { BucketId, ItemDetails, ItemPlace, ItemRow, ItemRows, ItemSelection } from './records.ts'
import {
  all,
  type EngineName,
  eachEngine,
  type Query,
  type Row,
  type Sql,
  type SqlValue,
} from './statements.ts'

/** Items with the bytes or the path that one search reads at most. At the bound it ends early, and its rows say where. */
const defaultBound = 2 ** 16

/** Rows that are read together at most. */
const largestBatch = 1_024

/** Whether a selection is read from the index of hashes or of paths. */
export const selectsFiles = ({ sha256, path }: Pick<ItemSelection, 'sha256' | 'path'>): boolean =>
  sha256 != null || path != null

/**
 * Finds up to `limit` items by their bytes, in the order of their numbers, or below a path, in the order of their paths, as Catalog.items; to be
 * run in one snapshot. The rows are read from the index in this order. Other filters are applied to them afterwards.
 */
export const searchFiles = (
  selection: ItemSelection,
  after: ItemPlace | null,
  limit: number,
  bound = defaultBound,
): Query<ItemRows> =>
  searchRows(selection.bucketId, after, limit, bound, {
    statementOf: (place, batch, now) => statementOf(selection, place, batch, now),
    readRow: readItemRow,
    isWanted: createFilter(selection),
    placeOf: ({ seq, item }) => ({ seq, createdAt: item.createdAt, path: item.path ?? null }),
  })

/** How a search reads rows in the order of its list. */
interface RowReads {
  /** The statement that reads the rows after a place. */
  statementOf(place: ItemPlace | null, batch: number, now: number): RowStatement
  /** Reads one of these rows. */
  readRow(row: Row): ItemRow
  /** Whether the filters select an item. */
  isWanted(item: ItemDetails): boolean
  placeOf(row: ItemRow): ItemPlace
}

interface RowStatement {
  readonly sql: Sql
  readonly values: readonly SqlValue[]
}

/** In place of the present time: no item has expired. A statement would pass by any number of expired items, which count here as the others. */
const always = Number.MIN_SAFE_INTEGER

const isLiveItem = ({ expiresAt }: ItemDetails, now: number): boolean => expiresAt == null || expiresAt > now

/** Reads rows in the order of a list, in batches, and keeps up to `limit` that the filters select. Reads at most about `bound` rows. */
export function* searchRows(
  bucketId: BucketId,
  after: ItemPlace | null,
  limit: number,
  bound: number,
  { statementOf, readRow, isWanted, placeOf }: RowReads,
): Query<ItemRows> {
  const now = Date.now()
  const bucket = yield* readBucketState(bucketId, now)
  const rows: ItemRow[] = []
  let place = after
  let left = bound
  let batch = limit
  while (rows.length < limit) {
    const { sql, values } = statementOf(place, batch, always)
    const read = yield* all(readRow, sql, ...values)
    const wanted = read.filter(({ item }) => isLiveItem(item, now) && isWanted(item))
    rows.push(...wanted.slice(0, limit - rows.length))
    const last = read.at(-1)
    if (last === undefined || read.length < batch) break
    place = placeOf(last)
    left -= read.length
    if (left <= 0 && rows.length < limit) return { ...bucket, rows, examined: place }
    batch = Math.min(batch * 4, Math.max(limit, largestBatch))
  }
  return { ...bucket, rows, examined: null }
}

function statementOf(
  { bucketId, order, sha256 = null, path = null }: ItemSelection,
  place: ItemPlace | null,
  batch: number,
  now: number,
): RowStatement {
  const isOldest = order === 'oldest'
  if (sha256 !== null) {
    const hash = Buffer.from(sha256, 'hex')
    const seq = place?.seq ?? (isOldest ? -1 : Number.MAX_SAFE_INTEGER)
    return { sql: byHash(order), values: [bucketId, now, hash, hash.subarray(0, 8), seq, batch] }
  }
  const [start, end] = [path ?? '', afterPaths(path ?? '')]
  const from = { path: place?.path ?? (isOldest ? start : end), seq: place?.seq ?? -1 }
  return { sql: byPath(order), values: [bucketId, now, from.path, from.seq, isOldest ? end : start, batch] }
}

/** SQLite has no statistics, and would read the bucket in the order of its numbers. */
const rowsFrom = (engine: EngineName, index: string): string =>
  `SELECT ${itemRowColumns} FROM items${engine === 'sqlite' ? ` INDEXED BY ${index}` : ''}
    WHERE bucket_id = $1 AND ${isLive('$2')}`

/** The index has the first eight bytes of each hash only. */
const byHash = (order: ItemOrder): Sql => {
  const { after, direction } = orders[order]
  return eachEngine(
    (engine) => `${rowsFrom(engine, 'items_by_hash')}
      AND sha256 = $3 AND substr(sha256, 1, 8) = $4 AND seq ${after} $5 ORDER BY seq ${direction} LIMIT $6`,
  )
}

const byPath = (order: ItemOrder): Sql => {
  const { after, until, direction } = orders[order]
  return eachEngine(
    (engine) => `${rowsFrom(engine, 'items_by_path')}
      AND path IS NOT NULL AND (path, seq) ${after} ($3, $4) AND path ${until} $5
      ORDER BY path ${direction}, seq ${direction} LIMIT $6`,
  )
}

/** Members of a selection that exclude no item, but say where a list is and how it is ordered. */
const ofList: ReadonlySet<string> = new Set([
  'bucketId',
  'order',
  'by',
  'startName',
] satisfies (keyof ItemSelection)[])

/** The filters that a selection has, with their values. */
export const filtersOf = (selection: ItemSelection): [string, unknown][] =>
  Object.entries(selection).filter(([name, wanted]) => wanted != null && !ofList.has(name))

const isMember = (name: string): name is ItemMember => Object.hasOwn(itemPlaces, name)

/**
 * Returns a function that compares all filters of a selection with an item, except the time at which it was taken. A further filter is compared with
 * the member of its name. Throws RangeError if there is none.
 */
export function createFilter(selection: ItemSelection): (item: ItemDetails) => boolean {
  const { bucketId: _, order: _o, by: _b, startName: _s, ...filters } = selection
  const { kind, from, to, name, labels, sha256, path, ...others } = filters
  const wanted = Object.entries(labels ?? {})
  const number = kind === null ? null : kindNumber(kind)
  const hash = sha256 == null ? null : Buffer.from(sha256, 'hex')
  const further = Object.entries(others).flatMap(([member, value]: [string, unknown]) => {
    if (value == null) return []
    if (!isMember(member)) throw new RangeError(`no search of items knows the filter ${member}`)
    return [{ member, value }]
  })
  return (item) => {
    const folded = name === null ? '' : nameLine(item.filename)
    return (
      (number === null || kindNumberOf(item.contentType) === number) &&
      (from === null || item.createdAt >= from) &&
      (to === null || item.createdAt < to) &&
      (name === null || containsAll(folded, name)) &&
      wanted.every(([key, value]) => item.labels?.[key] === value) &&
      (hash === null || hash.equals(item.sha256)) &&
      (path == null || (item.path?.startsWith(path) ?? false)) &&
      further.every(({ member, value }) => item[member] === value)
    )
  }
}
