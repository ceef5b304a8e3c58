import { bucketDeleted } from '../../core/faults.ts'
import { afterPaths, maxNameKey } from '../../core/names.ts'
import { type ItemOrder, itemKinds } from '../../core/queries.ts'
import { expiredColumn } from './buckets.ts'
import { readAfterNumber } from './expired-items.ts'
import { filtersAmong, timeOf } from './item-filters.ts'
import { kindExpression, kindNumber, listExpression, listNumber } from './item-kinds.ts'
import { hasItem, itemRowColumnCount, itemRowColumns, readItemRow } from './item-rows.ts'
import type { Part, Source } from './item-scan.ts'
import type { ItemPlace, ItemRow, ItemRows, ItemSelection } from './records.ts'
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
} from './statements.ts'

// The indexes of the table `items`, as sources of a scan.

/** Before all times, and after all of them. Milliseconds. */
export const [firstTime, endOfTime] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]

/** Before the keys of all names, and after all of them. */
const [firstName, endOfNames] = ['', '\u{10FFFF}'.repeat(maxNameKey + 1)]

/** How lists compare and sort. */
export const orders = {
  oldest: { after: '>', until: '<', direction: 'ASC' },
  newest: { after: '<', until: '>=', direction: 'DESC' },
} as const

/** The start and the end of a range in an order. */
export const inOrder = <Key>(order: ItemOrder, first: Key, last: Key): readonly [start: Key, end: Key] =>
  order === 'oldest' ? [first, last] : [last, first]

/** The indexes of the table, with the filters that they compare; `number` is the primary key. */
export const itemIndexes = {
  number: new Set<string>(),
  stored: new Set(['kind', 'from', 'to']),
  taken: new Set(['kind', 'from', 'to']),
  name: new Set(['kind']),
  hash: new Set(['sha256']),
  path: new Set(['path']),
}
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
  { seq, item, nameKey }: Pick<ItemRow, 'seq' | 'item' | 'nameKey'>,
): ItemPlace => ({
  seq,
  createdAt: timeOf(list, item),
  path: item.path ?? null,
  ...(nameKey === undefined ? {} : { name: nameKey }),
})

/** The most expired items of a bucket by which a list passes one after the other. */
export const maxPassed = 1_000

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
  const partOf = (rows: readonly ItemRow[], count: number): Part => {
    const last = rows.at(-1)
    const isFull = rows.length === count
    return {
      rows,
      last: isFull && last !== undefined ? placeOf(list, last) : null,
      cost: { rows: rows.length },
      isFull,
    }
  }
  return {
    bucketId,
    compared: filtersAmong(selection, itemIndexes[index]),
    isSparse: false,
    open({ expired, now }) {
      const isLong = index === 'number' && expired > maxPassed
      return function* read(after, { count }) {
        if (isLong) {
          const end = [engine, bucketId, order === 'oldest', after?.seq ?? null, count, now] as const
          const rows = yield* readAfterNumber(...end, columnsFor(by), readRow)
          if (rows !== null) return partOf(rows, count)
        }
        const { sql, values } = indexStatement(index, selection, by, after, count)
        return partOf(yield* all(readRow, sql, ...values), count)
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

const rowsFrom = (columns: string, condition: string, from = 'items') =>
  `SELECT ${columns} FROM ${from} WHERE bucket_id = $1 AND ${condition}`

/** SQLite has no statistics, and would read the bucket in the order of its numbers. */
const indexedBy = (engine: EngineName, index: string): string =>
  engine === 'sqlite' ? `items INDEXED BY ${index}` : 'items'

function textOf(index: ItemIndex, { order, kind }: ItemSelection, by: ItemSelection['by']): IndexText {
  const { after, until, direction } = orders[order]
  const byNumber = `seq ${direction}`
  switch (index) {
    case 'number':
      return {
        sql: eachEngine(() => `${rowsFrom(columnsFor(by), `seq ${after} $2`)} ORDER BY ${byNumber} LIMIT $3`),
        order: byNumber,
      }
    case 'hash':
      // The index has the first eight bytes of each hash only.
      return {
        sql: eachEngine(
          (engine) =>
            `${rowsFrom(columnsFor(by), `sha256 = $2 AND substr(sha256, 1, 8) = $3 AND seq ${after} $4`, indexedBy(engine, 'items_by_hash'))}
            ORDER BY ${byNumber} LIMIT $5`,
        ),
        order: byNumber,
      }
    case 'path': {
      const byPath = `path ${direction}, ${byNumber}`
      const condition = `path IS NOT NULL AND (path, seq) ${after} ($2, $3) AND path ${until} $4`
      return {
        sql: eachEngine(
          (engine) =>
            `${rowsFrom(columnsFor(by), condition, indexedBy(engine, 'items_by_path'))} ORDER BY ${byPath} LIMIT $5`,
        ),
        order: byPath,
      }
    }
    default: {
      // The index on kind and time has the items with and without `taken_at` apart, so that it also has a part of the list by that time.
      const terms = `${index === 'stored' ? 'created_at' : 'place'} ${direction}, ${byNumber}`
      const range = (key: string, condition: string) =>
        rowsFrom(
          index === 'taken' ? `${itemRowColumns}, ${key} AS place` : columnsFor(by),
          `${condition} AND (${key}, seq) ${after} ($2, $3) AND ${key} ${until} $4`,
        )
      const ranges = (kind === null ? itemKinds : [kind]).flatMap((kind) => {
        const isOfKind = `${kindExpression} = ${kindNumber(kind)}`
        if (index === 'name') return [range('name_key', isOfKind)]
        return [
          range('created_at', `${listExpression} = ${listNumber(kind, false)}`),
          index === 'taken'
            ? range('taken_at', `${isOfKind} AND taken_at IS NOT NULL`)
            : range('created_at', `${listExpression} = ${listNumber(kind, true)}`),
        ]
      })
      return { sql: firstOfRanges(ranges, `${terms} LIMIT $5`), order: terms }
    }
  }
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
export function indexStatement(
  index: ItemIndex,
  selection: ItemSelection,
  by: ItemSelection['by'],
  after: ItemPlace | null,
  count: number,
): IndexStatement {
  const { order, kind } = selection
  // The same texts for the same form of a selection, because statements are found by their texts.
  const key = `${index} ${order} ${itemIndexes[index].has('kind') ? kind : null} ${by}`
  const known = texts.get(key) ?? textOf(index, selection, by)
  texts.set(key, known)
  return { ...known, values: [selection.bucketId, ...rangeOf(index, selection, after), count] }
}

/** Where a statement starts and ends. */
function rangeOf(
  index: ItemIndex,
  { order, from, to, sha256, path }: ItemSelection,
  after: ItemPlace | null,
): readonly SqlValue[] {
  const seq = after?.seq ?? (order === 'oldest' ? -1 : endOfTime)
  if (index === 'number') return [seq]
  if (index === 'hash') {
    const hash = Buffer.from(sha256 ?? '', 'hex')
    return [hash, hash.subarray(0, 8), seq]
  }
  if (index === 'path') {
    const [start, end] = inOrder(order, path ?? '', afterPaths(path ?? ''))
    return [after?.path ?? start, after?.seq ?? -1, end]
  }
  if (index === 'name') {
    const [start, end] = inOrder(order, firstName, endOfNames)
    return [after?.name ?? start, after?.seq ?? -1, end]
  }
  const [start, end] = inOrder(order, from ?? firstTime, to ?? endOfTime)
  return [after?.createdAt ?? start, after?.seq ?? -1, end]
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
    rowsFrom(columnsFor(by), `seq ${isOne} AND ${isSelected}`),
    ...[bucketId, seqs, from ?? firstTime, to ?? endOfTime, kind === null ? -1 : kindNumber(kind)],
  )
  const found = new Map(rows.map((row) => [row.seq, row]))
  return seqs.flatMap((seq) => found.get(seq) ?? [])
}
