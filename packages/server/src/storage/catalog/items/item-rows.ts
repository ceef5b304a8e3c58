import { isObject, parseJson } from '../../../core/json.ts'
import { picturesOfItem } from '../buckets.ts'
import type { Item, ItemDetails, ItemRows, NewItem } from '../records.ts'
import {
  bucketIdOf,
  bytes,
  bytesOrNull,
  contentIdOf,
  formatLabels,
  integer,
  integerOrNull,
  itemIdOf,
  labelsOf,
  type Row,
  selectColumns,
  text,
  textOrNull,
} from '../statements.ts'
import {
  type ItemMember,
  itemColumnCount,
  itemColumns,
  itemPlaces,
  itemTable,
  laterMembers,
  newItemMembers,
  type StoredType,
} from './item-columns.ts'

// Items as rows of the table `items`, and the other way round.

/** The value of a member as its column has it. */
export function storedValue(
  item: Partial<ItemDetails>,
  member: ItemMember,
): number | string | Uint8Array | null {
  if (member === 'labels') return formatLabels(item.labels)
  const value = item[member]
  // A flag is 1 or null.
  return value === undefined || value === false ? null : value === true ? 1 : value
}

const at = itemPlaces

/** Copied and not created by its length, because arrays with holes are sent to threads as slowly as objects. */
const noValues: readonly (number | string | Uint8Array | null)[] = newItemMembers.map(() => null)

/** The values of the first of `itemColumns`. By name and not in a loop, which takes ten times as long. */
export function newItemValues(item: NewItem) {
  const values = noValues.slice()
  values[at.id] = item.id
  values[at.filename] = item.filename
  values[at.contentType] = item.contentType
  values[at.extension] = item.extension
  values[at.size] = item.size
  values[at.sha256] = item.sha256
  values[at.width] = item.width
  values[at.height] = item.height
  values[at.createdAt] = item.createdAt
  values[at.expiresAt] = item.expiresAt ?? null
  values[at.labels] = formatLabels(item.labels)
  values[at.path] = item.path ?? null
  values[at.takenAt] = item.takenAt ?? null
  values[at.takenOffset] = item.takenOffset ?? null
  values[at.takenRead] = item.takenRead === true ? 1 : null
  values[at.focus] = item.focus ?? null
  return values
}

/** The members that each item has. */
const readRequired = (row: Row) => ({
  id: itemIdOf(row, at.id),
  filename: textOrNull(row, at.filename),
  contentType: text(row, at.contentType),
  extension: textOrNull(row, at.extension),
  size: integer(row, at.size),
  sha256: bytes(row, at.sha256),
  width: integerOrNull(row, at.width),
  height: integerOrNull(row, at.height),
  createdAt: integer(row, at.createdAt),
})

const readers = {
  text: textOrNull,
  bytewise: textOrNull,
  int4: integerOrNull,
  int8: integerOrNull,
  bytes: bytesOrNull,
  labels: labelsOf,
  flag: () => true,
} as const satisfies Readonly<Record<StoredType, (row: Row, column: number) => unknown>>

const optionalOf = (members: readonly ItemMember[]) =>
  members
    .filter((member) => itemTable[member].isOptional)
    .map((member) => ({ member, at: at[member], read: readers[itemTable[member].type] }))
const [optionalOfNew, optionalOfAny] = [
  optionalOf(newItemMembers),
  optionalOf([...newItemMembers, ...laterMembers]),
]

/** Adds the members that an item may lack. Most items lack most of them. */
function readOptional(item: Record<string, unknown>, row: Row, members: typeof optionalOfAny): void {
  for (const { member, at, read } of members) if (row[at] !== null) item[member] = read(row, at)
}

/** Reads an item from the first columns of a row, which are the first of `itemColumns`. */
function readNewItem(row: Row): NewItem {
  const item = readRequired(row)
  readOptional(item, row, optionalOfNew)
  return item
}

/** Reads the details of an item from the first columns of a row, which are `itemColumns`. */
export function readItemDetails(row: Row): ItemDetails {
  const item = {
    ...readRequired(row),
    thumbhash: bytesOrNull(row, at.thumbhash),
    duration: integerOrNull(row, at.duration),
    altText: textOrNull(row, at.altText),
    caption: textOrNull(row, at.caption),
  }
  readOptional(item, row, optionalOfAny)
  return item
}

/** Whether a row of an outer join has an item. */
export const hasItem = (row: Row): boolean => row[at.id] !== null

/** The columns of an item in a list, and how many they are. */
export const [itemRowColumns, itemRowColumnCount] = [`${itemColumns}, seq`, itemColumnCount + 1]

/** Reads `itemRowColumns`. */
export const readItemRow = (row: Row): ItemRows['rows'][number] => ({
  seq: integer(row, itemColumnCount),
  item: readItemDetails(row),
})

/** Of the bucket of a row of `items`: 1 if it is private, 2 if it is deleted. An item without a bucket is not public. */
const isPrivateColumn = 'coalesce((SELECT private FROM buckets WHERE buckets.id = items.bucket_id), 1)'

const isDamaged = 'CAST(EXISTS (SELECT 1 FROM damaged WHERE damaged.id = items.id) AS int)'
const placed = selectColumns(
  {
    bucketId: 'bucket_id',
    isDamaged,
    contentId: 'content_id',
    isPrivate: isPrivateColumn,
    pictures: picturesOfItem,
  },
  itemColumnCount,
)

/** The columns of an item with its place. */
export const placedItemColumns = `items.${itemColumns}, ${placed.text}`
export const placedItemColumnCount = placed.end

/** Reads `placedItemColumns`. */
const readItem = (row: Row): Item => ({
  ...readItemDetails(row),
  bucketId: bucketIdOf(row, placed.at.bucketId),
  isDamaged: integer(row, placed.at.isDamaged) === 1,
  contentId: row[placed.at.contentId] === null ? null : contentIdOf(row, placed.at.contentId),
  isPrivate: integer(row, placed.at.isPrivate) === 1,
  pictures: textOrNull(row, placed.at.pictures),
})

/** Reads `placedItemColumns`. Null for an item that has expired, or whose bucket is deleted. */
export function readLiveItem(row: Row): Item | null {
  if (integer(row, placed.at.isPrivate) === 2) return null
  const item = readItem(row)
  return item.expiresAt == null || item.expiresAt > Date.now() ? item : null
}

/** The items of a request with a key in JSON, with hashes in hexadecimal digits. They are stored there because they may be deleted before a retry. */
export const serializeItems = (items: readonly NewItem[]): string =>
  JSON.stringify(items.map((item) => ({ ...item, sha256: Buffer.from(item.sha256).toString('hex') })))

/** Reads items of `serializeItems`. */
export function parseItems(json: string): NewItem[] {
  const items = parseJson(json)
  if (!Array.isArray(items)) throw new TypeError('the catalog holds items of a request that are no list')
  return items.map((item) =>
    readNewItem(newItemMembers.map((member) => storedJson(member, isObject(item) ? item[member] : null))),
  )
}

function storedJson(member: keyof NewItem, value: unknown): unknown {
  const { type } = itemTable[member]
  if (value == null || value === false) return null
  if (type === 'labels') return JSON.stringify(value)
  return type === 'bytes' ? new Uint8Array(Buffer.from(`${value}`, 'hex')) : value
}
