import { type ItemKind, itemKinds, maxNameKey } from '@mediabucket/client/rules'
import { bucketDeleted } from '../../../core/faults.ts'
import { afterPaths } from '../../../core/names.ts'
import type { ItemOrder } from '../../../core/queries.ts'
import { expiredColumn } from '../buckets.ts'
import { readAfterNumber } from '../items/expired-items.ts'
import { kindExpression, kindNumber, listExpression, listNumber } from '../items/item-kinds.ts'
import { hasItem, itemRowColumnCount, itemRowColumns, readItemRow } from '../items/item-rows.ts'
import type { ItemPlace, ItemRow, ItemRows, ItemSelection } from '../records.ts'
import {
  all,
  type EngineName,
  eachEngine,
  integer,
  type Query,
  type Row,
  type SqlValue,
  selectColumns,
  text,
} from '../statements.ts'
import { filtersAmong, timeOf } from './item-filters.ts'
import type { Part, Source } from './item-scan.ts'

// The indexes of the table `items`, as sources of a scan.

/** Before all times, and after all of them. Milliseconds. */
export const [firstTime, endOfTime] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]

/** After the keys of all names. */
const endOfNames = '\u{10FFFF}'.repeat(maxNameKey + 1)

/** How lists compare and sort. */
export const orders = {
  oldest: { after: '>', until: '<', direction: 'ASC' },
  newest: { after: '<', until: '>=', direction: 'DESC' },
} as const

/** The start and the end of a range in an order. */
export const inOrder = <Key>(order: ItemOrder, first: Key, last: Key): readonly [start: Key, end: Key] =>
  order === 'oldest' ? [first, last] : [last, first]

/** An index of the table. Its entries are in the order of a key and then of their numbers, or only of their numbers. */
interface Index {
  /** The filters that it compares. */
  readonly compared: ReadonlySet<string>
  /** The ranges that have the items of a selection: the key of each, and a condition. */
  readonly ranges: (selection: ItemSelection) => readonly (readonly [key: string, condition: string])[]
  /** The first key, and one after the last. */
  readonly ends?: (selection: ItemSelection) => readonly [SqlValue, SqlValue]
  readonly keyOf?: (place: ItemPlace) => SqlValue | undefined
  /** Values of the conditions, which follow the others of a statement. */
  readonly values?: (selection: ItemSelection) => readonly SqlValue[]
  /** The index that SQLite uses. Without statistics, its planner would choose the primary key. */
  readonly name?: string
}

const kindsOf = ({ kind }: ItemSelection): readonly ItemKind[] => (kind === null ? itemKinds : [kind])
const isOfKind = (kind: ItemKind) => `${kindExpression} = ${kindNumber(kind)}`
/** The index on kind and time has the items with and without `taken_at` apart, so that it also has a part of the list by that time. */
const storedRange = (kind: ItemKind, isTaken: boolean) =>
  ['created_at', `${listExpression} = ${listNumber(kind, isTaken)}`] as const

const byTime = {
  compared: new Set(['kind', 'from', 'to']),
  ends: ({ from, to }: ItemSelection) => [from ?? firstTime, to ?? endOfTime] as const,
  keyOf: ({ createdAt }: ItemPlace) => createdAt,
}

/** The hash of a selection, and its first eight bytes, which alone are in the index. */
export function hashOf({ sha256 }: ItemSelection): readonly [hash: Buffer, start: Buffer] {
  const hash = Buffer.from(sha256 ?? '', 'hex')
  return [hash, hash.subarray(0, 8)]
}

/** The indexes by name; `number` is the primary key. */
export const itemIndexes = {
  number: { compared: new Set<string>(), ranges: () => [['seq', 'true']] },
  stored: {
    ...byTime,
    ranges: (selection) =>
      kindsOf(selection).flatMap((kind) => [storedRange(kind, false), storedRange(kind, true)]),
  },
  taken: {
    ...byTime,
    ranges: (selection) =>
      kindsOf(selection).flatMap((kind) => [
        storedRange(kind, false),
        ['taken_at', `${isOfKind(kind)} AND taken_at IS NOT NULL`],
      ]),
  },
  name: {
    compared: new Set(['kind']),
    ranges: (selection) => kindsOf(selection).map((kind) => ['name_key', isOfKind(kind)]),
    ends: () => ['', endOfNames],
    keyOf: ({ name }) => name,
  },
  hash: {
    compared: new Set(['sha256']),
    // SQLite has another index (hash-source.ts).
    ranges: () => [['seq', 'sha256 = $4 AND substr(sha256, 1, 8) = $5']],
    values: (selection) => hashOf(selection),
  },
  path: {
    compared: new Set(['path']),
    ranges: () => [['path', 'path IS NOT NULL']],
    ends: ({ path }) => [path ?? '', afterPaths(path ?? '')],
    keyOf: ({ path }) => path ?? undefined,
    name: 'items_by_path',
  },
} as const satisfies Readonly<Record<string, Index>>
export type ItemIndex = keyof typeof itemIndexes

/** Reads rows from an index. The first value is the id of the bucket. */
interface IndexText {
  readonly sql: Readonly<Record<EngineName, string>>
  /** The terms of the order. */
  readonly order: string
}

interface IndexStatement extends IndexText {
  readonly values: readonly SqlValue[]
}

/** What is selected of an item; with the key of its name, if the list is in the order of names. */
export const columnsFor = (by: ItemSelection['by']): string =>
  by === 'name' ? `${itemRowColumns}, name_key AS place` : itemRowColumns

/** Where the key of the name is in a row of a list by name. */
const nameKeyPlace = itemRowColumnCount

export const readRowFor =
  (by: ItemSelection['by']) =>
  (row: Row): ItemRow =>
    by === 'name' ? { ...readItemRow(row), nameKey: text(row, nameKeyPlace) } : readItemRow(row)

/** The place of an item in a list. Its key of the name is that of the index, so that the list continues at the same entry. */
export const placeOf = (
  list: Pick<ItemSelection, 'by'>,
  { seq, item, nameKey, key }: Pick<ItemRow, 'seq' | 'item' | 'nameKey' | 'key'>,
): ItemPlace => ({
  seq,
  createdAt: timeOf(list, item),
  path: item.path ?? null,
  ...(nameKey === undefined ? {} : { name: nameKey }),
  ...(key === undefined ? {} : { key }),
})

/** The most expired items of a bucket by which a list passes one after the other. */
export const maxPassed = 1_000

/** Up to `count` rows of an index that were read at once, of a list `by`. */
export function partOf(
  rows: readonly ItemRow[],
  count: number,
  list: Pick<ItemSelection, 'by'> = { by: null },
): Part {
  const last = rows.at(-1)
  const isFull = rows.length === count
  return {
    rows,
    last: isFull && last !== undefined ? placeOf(list, last) : null,
    cost: { rows: rows.length },
    isFull,
  }
}

/** Reads the items of a selection from an index of their table. `by` says for which list, which may be in another order. */
export function createItemSource(
  engine: EngineName,
  index: ItemIndex,
  selection: ItemSelection,
  by = selection.by,
): Source {
  const { bucketId, order } = selection
  const list = { by: index === 'taken' ? index : null } as const
  const readRow = readRowFor(by)
  return {
    bucketId,
    compared: filtersAmong(selection, itemIndexes[index].compared),
    isSparse: false,
    open({ expired, now }) {
      const isLong = index === 'number' && expired > maxPassed
      return function* read(after, { count }) {
        if (isLong) {
          const end = [engine, bucketId, order === 'oldest', after?.seq ?? null, count, now] as const
          const rows = yield* readAfterNumber(...end, columnsFor(by), readRow)
          if (rows !== null) return partOf(rows, count, list)
        }
        const { sql, values } = indexStatement(index, selection, by, after, count)
        return partOf(yield* all(readRow, sql, ...values), count, list)
      }
    },
  }
}

/** With each row of a list that is read at once, of which `nameKey` is at `nameKeyPlace`. */
const listed = selectColumns({ nameKey: 'NULL', revision: 'revision', expired: 'expired' }, nameKeyPlace)
const listedByName = listed.text.replace('NULL', 'place')

/**
 * Reads a list from its index as Catalog.items, with one statement, which is one round trip of PostgreSQL and has a snapshot of its own. Null if expired
 * items are in the way.
 */
export function* readAtOnce(
  index: ItemIndex,
  selection: ItemSelection,
  after: ItemPlace | null,
  limit: number,
): Query<ItemRows | null> {
  const { sql, order, values } = indexStatement(index, selection, selection.by, after, limit)
  const now = Date.now()
  const readRow = readRowFor(selection.by)
  // If no item is selected, the row of the bucket has none.
  const found = yield* all(
    (row) => ({
      bucket: { revision: integer(row, listed.at.revision), expired: integer(row, listed.at.expired) },
      row: hasItem(row) ? readRow(row) : null,
    }),
    `WITH bucket AS MATERIALIZED (
      SELECT revision, ${expiredColumn('postgres', `$${values.length + 1}`)} AS expired FROM buckets WHERE id = $1
    ) SELECT ${itemRowColumns}, ${selection.by === 'name' ? listedByName : listed.text}
    FROM bucket LEFT JOIN (${sql.postgres}) AS item ON true ORDER BY ${order}`,
    ...[...values, now],
  )
  const [first] = found
  if (first === undefined) throw bucketDeleted()
  const rows = found.flatMap(({ row }) => (row === null ? [] : [row]))
  if (rows.some(({ item: { expiresAt } }) => expiresAt != null && expiresAt <= now)) return null
  return { ...first.bucket, rows, examined: null }
}

/** The statement of an index for one form of a selection: its order, its kind, and the list. */
function textOf(index: ItemIndex, selection: ItemSelection, by: ItemSelection['by']): IndexText {
  const { after, until, direction } = orders[selection.order]
  const { ranges, name }: Index = itemIndexes[index]
  // The list by the time taken has two keys.
  const columns = (key: string) => (index === 'taken' ? `${itemRowColumns}, ${key} AS place` : columnsFor(by))
  const all = ranges(selection)
  const rows = all.map(([key, condition]) => {
    const range = key === 'seq' ? `seq ${after} $2` : `(${key}, seq) ${after} ($2, $3) AND ${key} ${until} $4`
    return `SELECT ${columns(key)} FROM items WHERE bucket_id = $1 AND ${condition} AND ${range}`
  })
  const key = index === 'taken' || index === 'name' ? 'place' : all[0]?.[0]
  const order = key === 'seq' ? `seq ${direction}` : `${key} ${direction}, seq ${direction}`
  const { sqlite, postgres } = firstOfRanges(rows, `${order} LIMIT ${key === 'seq' ? '$3' : '$5'}`)
  const indexed = name === undefined ? sqlite : sqlite.replace('FROM items', `FROM items INDEXED BY ${name}`)
  return { sql: { sqlite: indexed, postgres }, order }
}

/** The first rows of ordered ranges. SQLite merges them as they are read. PostgreSQL sorts them, so it gets only the first rows of each. */
export const firstOfRanges = (ranges: readonly string[], order: string) =>
  eachEngine((engine) => {
    const parts =
      engine === 'sqlite' || ranges.length === 1
        ? ranges
        : ranges.map((rows) => `(${rows} ORDER BY ${order})`)
    return `${parts.join(' UNION ALL ')} ORDER BY ${order}`
  })

const texts = new Map<string, IndexText>()

/** Reads up to `count` rows from an index after a place. Filters that the index does not compare are ignored. */
function indexStatement(
  index: ItemIndex,
  selection: ItemSelection,
  by: ItemSelection['by'],
  after: ItemPlace | null,
  count: number,
): IndexStatement {
  const { bucketId, order, kind } = selection
  // The same texts for the same form of a selection, because statements are found by their texts.
  const form = `${index} ${order} ${kind} ${by}`
  const known = texts.get(form) ?? textOf(index, selection, by)
  texts.set(form, known)
  const { ends, keyOf, values }: Index = itemIndexes[index]
  const more = [count, ...(values?.(selection) ?? [])]
  if (ends === undefined)
    return { ...known, values: [bucketId, after?.seq ?? (order === 'oldest' ? -1 : endOfTime), ...more] }
  const [start, end] = inOrder(order, ...ends(selection))
  const key = after === null ? undefined : keyOf?.(after)
  return { ...known, values: [bucketId, key ?? start, after?.seq ?? -1, end, ...more] }
}

/** Reads those of the items with these numbers that have the kind and the times of a selection, in their order, for a list `by`. */
export function* readNumbered(
  engine: EngineName,
  { bucketId, kind, from, to }: ItemSelection,
  seqs: readonly number[],
  by: ItemSelection['by'],
): Query<readonly ItemRow[]> {
  if (seqs.length === 0) return []
  // In this form, PostgreSQL looks each number up, whatever it knows of the bucket.
  const isOne = engine === 'sqlite' ? '= ANY ($2::int8[])' : 'IN (SELECT unnest($2::int8[]))'
  const isSelected = `created_at >= $3 AND created_at < $4 AND ($5 < 0 OR ${kindExpression} = $5)`
  const rows = yield* all(
    readRowFor(by),
    `SELECT ${columnsFor(by)} FROM items WHERE bucket_id = $1 AND seq ${isOne} AND ${isSelected}`,
    ...[bucketId, seqs, from ?? firstTime, to ?? endOfTime, kind === null ? -1 : kindNumber(kind)],
  )
  const found = new Map(rows.map((row) => [row.seq, row]))
  return seqs.flatMap((seq) => found.get(seq) ?? [])
}
