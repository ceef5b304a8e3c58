import { nameKey } from '@mediabucket/client/rules'
import { nameLine } from '../../../../core/names.ts'
import {
  columnOf,
  type ItemColumnName,
  itemPlaces,
  laterMembers,
  newItemMembers,
  postgresTypeOf,
} from '../../items/item-columns.ts'
import { newItemValues, storedValue } from '../../items/item-rows.ts'
import type { AddedItem, BucketId, NewItem } from '../../records.ts'
import { bytesOrNull, type Row } from '../../statements.ts'
import type { TransferredItem } from '../../transfer.ts'
import { bytesArray } from './session.ts'

// Items as arrays, one for each column, with which a statement adds any number of them.

/** An array of a column of rows. Null without a value, which no driver or server has to write and parse. */
function arrayOf(rows: readonly Row[], place: number, type: string): unknown {
  if (rows.every((row) => row[place] === null)) return null
  return type === 'bytea'
    ? bytesArray(rows.map((row) => bytesOrNull(row, place)))
    : rows.map((row) => row[place])
}

/**
 * The arrays of the function `append_items` for members of a new item, its bytes and the key of its name, and what its statement calls their elements.
 * These names and their order stay: a database whose functions have another text is refused. Further members follow with the names of their columns.
 */
const named = {
  ...{ id: ['_ids', 'id'], extension: ['_extensions', 'extension'], filename: ['_filenames', 'filename'] },
  ...{ contentType: ['_types', 'type'], size: ['_sizes', 'size'], sha256: ['_hashes', 'hash'] },
  ...{ width: ['_widths', 'width'], height: ['_heights', 'height'], createdAt: ['_times', 'created_at'] },
  ...{
    contentId: ['_contents', 'content'],
    expiresAt: ['_expiries', 'expiry'],
    labels: ['_labels', 'labels'],
  },
  ...{ path: ['_paths', 'path'], takenAt: ['_taken', 'taken'], takenOffset: ['_offsets', 'taken_offset'] },
  ...{
    nameKey: ['_name_keys', 'name_key'],
    takenRead: ['_taken_read', 'taken_read'],
    focus: ['_focuses', 'focus'],
  },
} satisfies Partial<Readonly<Record<Appended, readonly [string, string]>>>

type Appended = keyof NewItem | 'contentId' | 'nameKey'
const isNamed = (name: string): name is keyof typeof named => Object.hasOwn(named, name)
const names: readonly Appended[] = [
  ...Object.keys(named).filter(isNamed),
  ...newItemMembers.filter((member) => !isNamed(member)),
]
const arrayNameOf = (name: Appended): string => (isNamed(name) ? named[name][0] : `_${columnOf(name)}`)
const elementOf = (name: Appended): string => (isNamed(name) ? named[name][1] : columnOf(name))
const typeOf = (name: Appended): string => (name === 'contentId' ? 'bytea' : postgresTypeOf(name))

/** Parts of the function: its parameters, its arrays, and the names, columns and values of their elements. */
export const appendParts = {
  parameters: [
    '_bucket int8',
    ...names.flatMap((name) => [
      `${arrayNameOf(name)} ${typeOf(name)}[]`,
      // Servers of an earlier version give the arguments in this order, without names.
      ...(name === 'expiresAt' ? ['_name_lines text[]', '_now int8'] : []),
    ]),
  ].join(', '),
  arrays: names.map(arrayNameOf).join(', '),
  elements: names.map(elementOf).join(', '),
  columns: names.map(columnOf).join(', '),
  values: names.map((name) => (name === 'contentId' ? 'content_id' : elementOf(name))).join(', '),
}

/** Calls the function with `appendValues`. */
export const appendStatement = `SELECT append_items(_bucket => $1, _now => $2, _name_lines => $3, ${names
  .map((name, index) => `${arrayNameOf(name)} => $${index + 4}`)
  .join(', ')})`

export function appendValues(bucketId: BucketId, added: readonly AddedItem[]): unknown[] {
  const rows = added.map((item) => newItemValues(item))
  const lines = added.map(({ filename }) => nameLine(filename))
  const arrays = names.map((name) => {
    if (name === 'contentId') return bytesArray(added.map(({ bytes }) => bytes))
    return name === 'nameKey' ? lines.map(nameKey) : arrayOf(rows, itemPlaces[name], typeOf(name))
  })
  return [bucketId, Date.now(), lines, ...arrays]
}

const transferred: readonly ItemColumnName[] = [
  ...(['bucketId', 'seq', 'nameKey', 'homeSeq', 'deletedAt', 'leavesTrashAt'] as const),
  ...newItemMembers,
  ...laterMembers,
]
const columns = transferred.map(columnOf).join(', ')
const types = transferred.map(postgresTypeOf)

/** Inserts items with `transferValues`, and their bytes. */
export const transferStatement = `WITH item AS MATERIALIZED (
    SELECT *, CASE WHEN content IS NOT NULL THEN new_content_id() END AS content_id
    FROM unnest(${['bytea', ...types].map((type, index) => `$${index + 1}::${type}[]`).join(', ')}) AS item (content, ${columns})
  ), stored AS (
    INSERT INTO contents (id, bucket_id, bytes) SELECT content_id, bucket_id, content FROM item WHERE content IS NOT NULL
  )
  INSERT INTO items (content_id, ${columns}) SELECT content_id, ${columns} FROM item`

export function transferValues(items: readonly TransferredItem[]): unknown[] {
  const rows = items.map(({ bucketId, seq, item, trashed }) => [
    ...[bucketId, seq, nameKey(nameLine(item.filename))],
    ...[trashed?.homeSeq ?? null, trashed?.deletedAt ?? null, trashed?.expiresAt ?? null],
    ...newItemValues(item),
    ...laterMembers.map((member) => storedValue(item, member)),
  ])
  const contents = bytesArray(items.map(({ bytes }) => bytes))
  return [contents, ...types.map((type, place) => arrayOf(rows, place, type))]
}
