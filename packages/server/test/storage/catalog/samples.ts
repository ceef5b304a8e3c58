import { createHash } from 'node:crypto'
import { storedFocus } from '../../../src/core/focus.ts'
import { newItemId, newMultipartId, newUploadId } from '../../../src/core/ids.ts'
import type { NewServiceToken, NewToken } from '../../../src/storage/catalog/access/tokens.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import type { NewMultipart, StoredPart } from '../../../src/storage/catalog/objects/multipart-uploads.ts'
import type { NewKey } from '../../../src/storage/catalog/objects/object-keys.ts'
import type { AddedItem, BucketId, Item, NewItem, TokenId } from '../../../src/storage/catalog/records.ts'
import type { NewUpload } from '../../../src/storage/catalog/uploads.ts'

export const hashOf = (text: string): Uint8Array => new Uint8Array(createHash('sha256').update(text).digest())

export const newItem = (fields: Partial<NewItem> = {}): NewItem => ({
  id: newItemId(),
  filename: 'harbour.jpg',
  contentType: 'image/jpeg',
  extension: 'jpg',
  size: 1_000,
  sha256: hashOf('harbour'),
  width: 640,
  height: 480,
  createdAt: 1_790_000_000_000,
  ...fields,
})

/** With every member that an item can have. */
export const completeItem = (sha256 = hashOf('harbour')): Required<NewItem> => ({
  id: newItemId(),
  filename: 'harbour.jpg',
  contentType: 'image/jpeg',
  extension: 'jpg',
  size: 5,
  sha256,
  width: 640,
  height: 480,
  createdAt: 1_790_000_000_000,
  expiresAt: 1_800_000_000_000,
  labels: { album: '42' },
  path: 'summer/harbour.jpg',
  takenAt: 1_532_023_331_000,
  takenOffset: 120,
  takenRead: true,
  focus: storedFocus({ x: 0.25, y: 0.5 }),
})

/** An item as it is stored, which nobody has seen or described. */
export const storedItem = (fields: Partial<Item> = {}): Item => ({
  ...newItem(),
  ...{ thumbhash: null, duration: null, altText: null, caption: null },
  ...{ bucketId: 1 as BucketId, isDamaged: false, contentId: null, isPrivate: false, pictures: null },
  ...fields,
})

export const newItems = (count: number): NewItem[] => Array.from({ length: count }, () => newItem())

/** The items for `addItems`, without bytes in the catalog. */
export const inBlobStore = (items: readonly NewItem[]): AddedItem[] =>
  items.map((item) => ({ ...item, bytes: null }))

/** Bytes in a buffer of their own, which the catalog takes over. */
export const copyOf = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(bytes)

/** The bytes of `withBytes`. */
export const contentOf = ({ id }: Pick<NewItem, 'id'>): Uint8Array<ArrayBuffer> =>
  copyOf(Buffer.from(`the bytes of ${id}`))

/** The item for `addItems`, with bytes in the catalog. */
export const withBytes = (item: NewItem): AddedItem => ({ ...item, bytes: contentOf(item) })

export const newUpload = (bucketId: BucketId, fields: Partial<NewUpload> = {}): NewUpload => ({
  id: newUploadId(),
  bucketId,
  length: 1_000,
  metadata: 'filename aGFyYm91ci5qcGc=',
  filename: 'harbour.jpg',
  declaredType: 'image/jpeg',
  itemId: newItemId(),
  expiresAt: 1_800_000_000_000,
  tokenId: null,
  limitedBy: null,
  ...fields,
})

/** An upload of an object in parts. */
export const newMultipart = (fields: Partial<Omit<NewMultipart, 'bucketId'>> = {}) => ({
  id: newMultipartId(1_790_000_000_000),
  key: 'folder/film.mp4',
  headers: '{"metadata":{}}',
  isPublic: false,
  checksum: 'CRC32 COMPOSITE',
  createdAt: 1_790_000_000_000,
  expiresAt: 1_800_000_000_000,
  tokenId: null,
  limitedBy: null,
  ...fields,
})

/** A key with a new item, whose bytes are in the catalog. */
export const newKey = (key: string, item = newItem(), fields: Partial<NewKey> = {}): NewKey => ({
  key,
  item: withBytes(item),
  ...{ etag: 'a'.repeat(32), parts: null, isPublic: false, headers: '{"metadata":{}}' },
  modifiedAt: 1_790_000_000_000,
  ...fields,
})

/** A part with a blob of its own. */
export const newPart = (number: number, size = 100, itemId = newItemId()): StoredPart => ({
  ...{ number, itemId, size, checksum: 'AAAAAA==', storedAt: 1_790_000_000_000 },
  etag: number.toString(16).padStart(32, '0'),
})

/** A token whose id is `name` and whose hash is that of `name`. */
export const newToken = (name: string, fields: Partial<NewToken> = {}): NewToken => ({
  id: name as TokenId,
  bucket: 'holiday',
  name,
  hash: hashOf(name),
  scopes: ['media:read', 'media:write'],
  createdAt: 1_790_000_000_000,
  expiresAt: null,
  ...fields,
})

/** As newToken, of the service. */
export const newServiceToken = (name: string, fields: Partial<NewServiceToken> = {}): NewServiceToken => ({
  id: name as TokenId,
  name,
  hash: hashOf(name),
  scopes: ['buckets:manage', 'media:read'],
  createdAt: 1_790_000_000_000,
  expiresAt: null,
  ...fields,
})

/** Creates a bucket with a token, by default of the same name. Returns the id of the bucket. */
export async function newBucket(catalog: Catalog, name: string, token = name): Promise<BucketId> {
  await catalog.addToken(newToken(token, { bucket: name }))
  const grant = await catalog.findGrant(hashOf(token))
  if (!grant) throw new Error('a token that was just added is unknown')
  return grant.bucketId
}

/** The ids on all pages, in order. Also reads the empty page after the last one. */
export async function allPages(catalog: Catalog, bucketId: BucketId): Promise<string[]> {
  const ids: string[] = []
  for (let page = 1; ; page++) {
    const { rows } = await catalog.page(bucketId, page)
    if (rows.length === 0) return ids
    ids.push(...rows.map((row) => row.id))
  }
}
