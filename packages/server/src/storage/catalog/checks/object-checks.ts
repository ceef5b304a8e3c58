import { isUtf8 } from 'node:buffer'
import { isObject, parseJson } from '../../../core/json.ts'
import { isReservedKey, maxKeyLength } from '../../../core/object-key-rules.ts'
import {
  bucket,
  bytes,
  type ColumnCheck,
  counter,
  flag,
  integer,
  isItemList,
  itemId,
  laterTime,
  ofBucket,
  optional,
  shape,
  type TableCheck,
  text,
  time,
  tokenId,
  uploadId,
} from './cell-checks.ts'

// What the columns of the tables of keys contain.

/** Characters of the JSON of the headers of an object. */
const maxHeaders = 8_192

/** JSON of the parts of an object, as its completion writes them. */
function isPartList(json: string): boolean {
  const parts = parseJson(json)
  return Array.isArray(parts) && parts.length > 0 && parts.every(isPart)
}

const isPart = (part: unknown): boolean =>
  isObject(part) &&
  isSize(part['size']) &&
  (part['checksum'] === undefined || (typeof part['checksum'] === 'string' && part['checksum'].length <= 100))

const isSize = (size: unknown): boolean => typeof size === 'number' && Number.isSafeInteger(size) && size >= 0

const headers = text((json) => json.length <= maxHeaders && isObject(parseJson(json)))

/** UTF-8, because lists read keys as text. Keys below `_items/` belong to items without a key. */
const objectKey: ColumnCheck = {
  reads: 'hex',
  isValid(value) {
    const key = Buffer.from(value ?? '', 'hex')
    return key.length > 0 && key.length <= maxKeyLength && isUtf8(key) && !isReservedKey(key.toString())
  },
}

export const objectChecks: Readonly<Record<string, TableCheck>> = {
  object_keys: {
    key: ['item_id'],
    columns: {
      bucket_id: bucket,
      key: objectKey,
      item_id: itemId,
      item_size: integer(),
      etag: shape(/^[0-9a-f]{32}(?:-\d{1,5})?$/),
      parts: optional(text(isPartList)),
      public: flag,
      headers,
      modified_at: time,
    },
    references: {
      item_id:
        'EXISTS (SELECT 1 FROM items WHERE items.id = item_id AND items.bucket_id = object_keys.bucket_id AND items.bucket_id > 0)',
      item_size: 'NOT EXISTS (SELECT 1 FROM items WHERE items.id = item_id AND items.size <> item_size)',
    },
    dependsOn: 'item_id',
  },
  keyed_counts: {
    key: ['bucket_id', 'slot'],
    columns: { bucket_id: bucket, slot: integer(), items: counter },
    references: { bucket_id: ofBucket('keyed_counts') },
    dependsOn: 'bucket_id',
  },
  object_uploads: {
    key: ['id'],
    columns: {
      id: uploadId,
      bucket_id: bucket,
      key: bytes(1, 1_024),
      headers,
      public: flag,
      checksum: optional(shape(/^[A-Z0-9]{1,20} [A-Z_]{1,20}$/)),
      created_at: time,
      expires_at: laterTime,
      token_id: optional(tokenId),
      limited_by: optional(tokenId),
      item: optional(text(isItemList)),
      etag: optional(shape(/^[0-9a-f]{32}-\d{1,5}$/)),
      parts: optional(text(isPartList)),
    },
    references: {
      bucket_id: ofBucket('object_uploads'),
      item: '(item IS NULL) = (etag IS NULL) AND (item IS NULL) = (parts IS NULL)',
      limited_by: `item IS NOT NULL OR limited_by IS NULL OR EXISTS (SELECT 1 FROM token_limits
        WHERE token_limits.id = limited_by AND token_limits.bucket_id = object_uploads.bucket_id)
        OR EXISTS (SELECT 1 FROM meta WHERE meta.key LIKE 'deleting%')`,
    },
  },
  object_parts: {
    key: ['upload_id', 'number'],
    columns: {
      upload_id: uploadId,
      number: integer(1, 10_000),
      item_id: itemId,
      size: integer(),
      etag: shape(/^[0-9a-f]{32}$/),
      checksum: optional(shape(/^[A-Za-z0-9+/]{1,100}={0,2}$/)),
      stored_at: time,
    },
    references: {
      upload_id: 'EXISTS (SELECT 1 FROM object_uploads WHERE object_uploads.id = upload_id AND item IS NULL)',
      item_id: 'NOT EXISTS (SELECT 1 FROM items WHERE items.id = object_parts.item_id)',
    },
    dependsOn: 'upload_id',
  },
}
