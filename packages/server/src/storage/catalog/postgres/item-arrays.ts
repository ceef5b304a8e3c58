import { nameKey, nameLine } from '../../../core/names.ts'
import {
  columnOf,
  type ItemColumnName,
  itemPlaces,
  laterMembers,
  newItemMembers,
  postgresTypeOf,
} from '../item-columns.ts'
import { newItemValues, storedValue } from '../item-rows.ts'
import type { AddedItem, BucketId, NewItem } from '../records.ts'
import { bytesOrNull, type Row } from '../statements.ts'
import type { TransferredItem } from '../transfer.ts'
import { bytesArray } from './session.ts'

// Items as arrays, one for each column, with which a statement adds any number of them.

/** An array of a column of rows. Null without a value, which no driver or server has to write and parse. */
function arrayOf(rows: readonly Row[], column: number, type: string): unknown {
  if (rows.every((row) => row[column] === null)) return null
  return type === 'bytea'
    ? bytesArray(rows.map((row) => bytesOrNull(row, column)))
    : rows.map((row) => row[column])
}

/**
 * The parameters of the function `append_items`, and the names of their elements in its statement: of the members of new items, and of what else an
 * addition has. They stay as they are: a database whose functions have another text is refused, and servers of two versions call the same function.
 */
const appended = {
  bucketId: ['_bucket', null],
  id: ['_ids', 'id'],
  extension: ['_extensions', 'extension'],
  filename: ['_filenames', 'filename'],
  contentType: ['_types', 'type'],
  size: ['_sizes', 'size'],
  sha256: ['_hashes', 'hash'],
  width: ['_widths', 'width'],
  height: ['_heights', 'height'],
  createdAt: ['_times', 'created_at'],
  contentId: ['_contents', 'content'],
  expiresAt: ['_expiries', 'expiry'],
  nameLine: ['_name_lines', null],
  now: ['_now', null],
  labels: ['_labels', 'labels'],
  path: ['_paths', 'path'],
  takenAt: ['_taken', 'taken'],
  takenOffset: ['_offsets', 'taken_offset'],
  nameKey: ['_name_keys', 'name_key'],
  takenRead: ['_taken_read', 'taken_read'],
} as const satisfies Readonly<Record<keyof NewItem, readonly [string, string]>> &
  Readonly<Record<string, readonly [string, string | null]>>

type Appended = keyof typeof appended
const typesOfOthers = {
  bucketId: 'int8',
  contentId: 'bytea[]',
  nameLine: 'text[]',
  now: 'int8',
  nameKey: 'text[]',
} as const satisfies Readonly<Record<Exclude<Appended, keyof NewItem>, string>>

const isAppended = (name: string): name is Appended => Object.hasOwn(appended, name)
const isOther = (name: Appended): name is keyof typeof typesOfOthers => Object.hasOwn(typesOfOthers, name)
const names = Object.keys(appended).filter(isAppended)
const isElement = (name: Appended): name is Exclude<Appended, 'nameLine' | 'now'> =>
  appended[name][1] !== null
const elements = names.filter(isElement)

/** Parts of the function, separated by commas: its parameters, those with an element for each item, and the names and the columns of these. */
export const appendParts = {
  parameters: names
    .map(
      (name) => `${appended[name][0]} ${isOther(name) ? typesOfOthers[name] : `${postgresTypeOf(name)}[]`}`,
    )
    .join(', '),
  arrays: elements.map((name) => appended[name][0]).join(', '),
  elements: elements.map((name) => appended[name][1]).join(', '),
  columns: elements.map(columnOf).join(', '),
  stored: elements.map((name) => (name === 'contentId' ? 'content_id' : appended[name][1])).join(', '),
}

/** Calls the function with `appendValues`. */
export const appendStatement = `SELECT append_items(${names
  .map((name, index) => `${appended[name][0]} => $${index + 1}`)
  .join(', ')})`

export function appendValues(bucketId: BucketId, added: readonly AddedItem[]): unknown[] {
  const rows = added.map((item) => newItemValues(item))
  const lines = added.map(({ filename }) => nameLine(filename))
  const others: Readonly<Record<keyof typeof typesOfOthers, unknown>> = {
    bucketId,
    contentId: bytesArray(added.map(({ bytes }) => bytes)),
    nameLine: lines,
    now: Date.now(),
    nameKey: lines.map(nameKey),
  }
  return names.map((name) =>
    isOther(name) ? others[name] : arrayOf(rows, itemPlaces[name], postgresTypeOf(name)),
  )
}

const transferred: readonly ItemColumnName[] = [
  ...(['bucketId', 'seq', 'nameKey', 'homeSeq', 'deletedAt', 'leavesTrashAt'] as const),
  ...newItemMembers,
  ...laterMembers,
]
const transferredColumns = transferred.map(columnOf).join(', ')
const transferredTypes = transferred.map(postgresTypeOf)

/** Inserts items with `transferValues`, and their bytes. */
export const transferStatement = `WITH item AS MATERIALIZED (
    SELECT *, CASE WHEN content IS NOT NULL THEN new_content_id() END AS content_id
    FROM unnest(${['bytea', ...transferredTypes].map((type, index) => `$${index + 1}::${type}[]`).join(', ')})
      AS item (content, ${transferredColumns})
  ), stored AS (
    INSERT INTO contents (id, bucket_id, bytes) SELECT content_id, bucket_id, content FROM item WHERE content IS NOT NULL
  )
  INSERT INTO items (content_id, ${transferredColumns}) SELECT content_id, ${transferredColumns} FROM item`

export function transferValues(items: readonly TransferredItem[]): unknown[] {
  const rows = items.map(({ bucketId, seq, item, trashed }) => [
    ...[bucketId, seq, nameKey(nameLine(item.filename))],
    ...[trashed?.homeSeq ?? null, trashed?.deletedAt ?? null, trashed?.expiresAt ?? null],
    ...newItemValues(item),
    ...laterMembers.map((member) => storedValue(item, member)),
  ])
  return [
    bytesArray(items.map(({ bytes }) => bytes)),
    ...transferredTypes.map((type, column) => arrayOf(rows, column, type)),
  ]
}
