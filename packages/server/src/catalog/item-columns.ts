import { maxExpired } from '../core/item-expiry.ts'
import type { ItemId } from '../core/media-id.ts'
import type { BucketId, ContentId, Item, ItemDetails, NewItem } from './records.ts'
import { bytes, bytesOrNull, integer, integerOrNull, type Row, text, textOrNull } from './rows.ts'

/** The columns of an item as it is added, and their number. */
export const newItemColumns =
  'id, filename, content_type, extension, size, sha256, width, height, created_at, item_expires_at'
export const newItemColumnCount = 10

/** The values of `newItemColumns`. */
export const newItemValues = (item: NewItem, sha256: Uint8Array | null = item.sha256) =>
  [
    item.id,
    item.filename,
    item.contentType,
    item.extension,
    item.size,
    sha256,
    item.width,
    item.height,
    item.createdAt,
    item.expiresAt ?? null,
  ] as const

/** The columns of `items` that `readItemDetails` reads, and their number. */
export const itemColumns = `${newItemColumns}, thumbhash, duration, alt_text, caption`
export const itemColumnCount = newItemColumnCount + 4

/** Reads an item from the first columns of a row, which are `newItemColumns`. */
export const readNewItem = (row: Row, sha256: Uint8Array = bytes(row, 5)): NewItem => ({
  id: text(row, 0) as ItemId,
  filename: textOrNull(row, 1),
  contentType: text(row, 2),
  extension: textOrNull(row, 3),
  size: integer(row, 4),
  sha256,
  width: integerOrNull(row, 6),
  height: integerOrNull(row, 7),
  createdAt: integer(row, 8),
  ...(row[9] === null ? {} : { expiresAt: integer(row, 9) }),
})

/** Reads the details of an item from the first columns of a row, which are `itemColumns`. */
export const readItemDetails = (row: Row): ItemDetails => ({
  ...readNewItem(row),
  thumbhash: bytesOrNull(row, 10),
  duration: integerOrNull(row, 11),
  altText: textOrNull(row, 12),
  caption: textOrNull(row, 13),
})

/** 1 if the bucket of a row of `items` is private. An item without a bucket is not public. */
export const isPrivateColumn = 'coalesce((SELECT private FROM buckets WHERE buckets.id = items.bucket_id), 1)'

/**
 * Reads an item from `itemColumns` and four more columns: the id of its bucket, 1 if it is damaged, the id of its bytes in the catalog or
 * null, and 1 if it is private.
 */
export const readItem = (row: Row): Item => ({
  ...readItemDetails(row),
  bucketId: integer(row, itemColumnCount) as BucketId,
  isDamaged: integer(row, itemColumnCount + 1) === 1,
  contentId: integerOrNull(row, itemColumnCount + 2) as ContentId | null,
  isPrivate: integer(row, itemColumnCount + 3) === 1,
})

/** True for items that have not expired at `now`, a parameter. */
export const isLive = (now: string): string => `coalesce(item_expires_at > ${now}, true)`

/**
 * Of a row of `buckets`: the number or the bytes of the items that have expired at `now`, a parameter, and are not removed yet, of
 * `maxExpired` + 1 items at the most. `bucket` is the id of its bucket or its trash.
 */
const expired = (value: string, column: string, bucket: string, now: string): string =>
  `CASE WHEN buckets.next_expiry <= ${now} THEN (SELECT ${value} FROM (SELECT ${column} FROM items
    WHERE bucket_id = ${bucket} AND item_expires_at IS NOT NULL AND item_expires_at <= ${now} LIMIT ${maxExpired + 1}) AS expired) ELSE 0 END`
const expiredCount = (bucket: string, now: string): string => expired('count(*)', 'seq', bucket, now)
const expiredBytes = (bucket: string, now: string): string =>
  expired('CAST(coalesce(sum(size), 0) AS bigint)', 'size', bucket, now)

/** How many items of the bucket have expired at `now`, a parameter, and are not removed yet; `maxExpired` + 1 at the most. */
export const expiredColumn = (now: string): string => expiredCount('buckets.id', now)
/** As expiredColumn, and the bytes of these items and of those in the trash. */
export const expiredOfBucket = (now: string): string =>
  `${expiredColumn(now)}, ${expiredBytes('buckets.id', now)} + ${expiredBytes('-buckets.id', now)}`
/** As expiredColumn, of the trash, and the bytes of these items. */
export const expiredOfTrash = (now: string): string =>
  `${expiredCount('-buckets.id', now)}, ${expiredBytes('-buckets.id', now)}`

/** Null for an item that has expired. */
export const unlessExpired = (item: Item): Item | null =>
  item.expiresAt == null || item.expiresAt > Date.now() ? item : null
