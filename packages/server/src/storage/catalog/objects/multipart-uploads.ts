import type { ItemId, UploadId } from '../../../core/ids.ts'
import { endOf } from '../../../core/object-key-rules.ts'
import type { Actor } from '../../../core/token-rules.ts'
import { countLimited } from '../access/token-limits.ts'
import { auditedWritesOf, ofBucket, writesOf } from '../declarations.ts'
import { parseItems, serializeItems } from '../items/item-rows.ts'
import type { BucketId, NewItem, TokenId } from '../records.ts'
import {
  all,
  bucketIdOf,
  first,
  integer,
  itemIdOf,
  type Query,
  type Row,
  text,
  textOrNull,
  tokenIdOrNull,
  uploadIdOf,
  type Work,
  write,
} from '../statements.ts'
import { type NewUpload, release, reserve } from '../uploads.ts'
import { bindKey, freeKey, type KeyRefusal, keyTextOf, type NewKey, type Replacement } from './object-keys.ts'
import { commonPrefixOf } from './object-lists.ts'

// Objects that are uploaded in parts. Each part is a blob of its own, whose id is one of items; no item has it.

/** Ids of the uploads of one key are in the order of their creation. */
export interface NewMultipart
  extends Pick<NewUpload, 'id' | 'bucketId' | 'expiresAt' | 'tokenId' | 'limitedBy'> {
  readonly key: string
  /** Headers of the object, as JSON. */
  readonly headers: string
  readonly isPublic: boolean
  /** The algorithm and the type of its checksum, separated by a space; null for none. */
  readonly checksum: string | null
  /** Milliseconds since 1970. */
  readonly createdAt: number
}

export interface Multipart extends NewMultipart {
  /** The object that it has become, as it was then; null before. */
  readonly completed: { readonly item: NewItem; readonly etag: string; readonly parts: string } | null
}

export interface StoredPart {
  /** From 1 to 10,000. */
  readonly number: number
  /** The name of its blob. */
  readonly itemId: ItemId
  /** Bytes. */
  readonly size: number
  readonly etag: string
  /** Of the algorithm of its upload; null if the upload has none. */
  readonly checksum: string | null
  /** Milliseconds since 1970. */
  readonly storedAt: number
}

/** An upload in a list. */
export type ListedMultipart = Pick<NewMultipart, 'id' | 'key' | 'createdAt' | 'checksum'>

/** Which uploads a list has. */
export interface MultipartSelection {
  readonly prefix: string
  /** Keys that are equal up to a delimiter after the prefix are one entry; null for none. */
  readonly delimiter: string | null
  /** The entry after which the list begins; `id` is null for all uploads of the key, and for all keys that begin with it if `isPrefix`. */
  readonly after: MultipartPlace | null
  readonly limit: number
  /** The limits with which the uploads were created; null for none. */
  readonly limitedBy: TokenId | null
}

export interface MultipartPlace {
  readonly key: string
  readonly id: UploadId | null
  readonly isPrefix: boolean
}

/** An upload, or a text with which several keys begin. Both are in the order of the bytes of their keys. */
export type MultipartEntry = { readonly upload: ListedMultipart } | { readonly prefix: string }

const columns = `object_uploads.id, bucket_id, key, headers, public, object_uploads.checksum, created_at, expires_at, token_id, limited_by,
  item, etag, parts`

const readMultipart = (row: Row): Multipart => ({
  id: uploadIdOf(row, 0),
  bucketId: bucketIdOf(row, 1),
  key: keyTextOf(row, 2),
  headers: text(row, 3),
  isPublic: integer(row, 4) === 1,
  checksum: textOrNull(row, 5),
  createdAt: integer(row, 6),
  expiresAt: integer(row, 7),
  tokenId: tokenIdOrNull(row, 8),
  limitedBy: tokenIdOrNull(row, 9),
  completed: row[10] === null ? null : readCompleted(row),
})

function readCompleted(row: Row): Multipart['completed'] {
  const [item] = parseItems(text(row, 10))
  if (item === undefined) throw new TypeError('the catalog holds a completed upload without its item')
  return { item, etag: text(row, 11), parts: text(row, 12) }
}

const readPart = (row: Row): StoredPart => ({
  number: integer(row, 0),
  itemId: itemIdOf(row, 1),
  size: integer(row, 2),
  etag: text(row, 3),
  checksum: textOrNull(row, 4),
  storedAt: integer(row, 5),
})

/** The upload with this id, also a completed or expired one. */
export const findMultipart = (bucketId: BucketId, id: UploadId): Query<Multipart | null> =>
  first(
    readMultipart,
    `SELECT ${columns} FROM object_uploads WHERE id = $1 AND bucket_id = $2`,
    ...[id, bucketId],
  )

/** Up to `limit` parts with numbers above `after`, in their order. */
export const listParts = (id: UploadId, after: number, limit: number): Query<StoredPart[]> =>
  all(
    readPart,
    `SELECT number, item_id, size, etag, checksum, stored_at FROM object_parts
    WHERE upload_id = $1 AND number > $2 ORDER BY number LIMIT $3`,
    ...[id, after, limit],
  )

/**
 * Uploads of the bucket that are neither completed nor expired at `now`. Reads as many rows with the selected limits as it returns entries, and a few
 * more for each prefix.
 */
export function* listMultiparts(
  bucketId: BucketId,
  { prefix, delimiter, after, limit, limitedBy }: MultipartSelection,
  now: number,
): Query<MultipartEntry[]> {
  const entries: MultipartEntry[] = []
  let place = startOf(prefix, after)
  while (entries.length < limit) {
    const wanted = limit - entries.length
    const found = yield* all(
      readListed,
      `SELECT id, key, created_at, checksum FROM object_uploads
      WHERE bucket_id = $1 AND (key, id) > ($2, $3) AND key < $4 AND item IS NULL AND expires_at > $5
        AND coalesce(limited_by, '') = $6 ORDER BY key, id LIMIT $7`,
      ...[bucketId, place.key, place.id, endOf(prefix), now, limitedBy ?? '', wanted],
    )
    let last: string | null = null
    for (const upload of found) {
      const common = commonPrefixOf(upload.key, prefix, delimiter)
      if (common === null) entries.push({ upload })
      else if (common !== last) entries.push({ prefix: common })
      last = common
    }
    const end = found.at(-1)
    if (end === undefined || found.length < wanted) return entries
    // The other keys with the prefix are passed by.
    place = last === null ? { key: Buffer.from(end.key), id: end.id } : { key: endOf(last), id: '' }
  }
  return entries
}

const readListed = (row: Row): ListedMultipart => ({
  id: uploadIdOf(row, 0),
  key: keyTextOf(row, 1),
  createdAt: integer(row, 2),
  checksum: textOrNull(row, 3),
})

/** The key and the id after which the rows of a list begin. */
function startOf(
  prefix: string,
  after: MultipartPlace | null,
): { readonly key: Buffer; readonly id: string } {
  const [key, first] = [Buffer.from(after?.key ?? ''), Buffer.from(prefix)]
  if (after === null || Buffer.compare(key, first) < 0) return { key: first, id: '' }
  if (after.isPrefix) return { key: endOf(after.key), id: '' }
  // No id of an upload is greater.
  return { key, id: after.id ?? '~' }
}

/** Up to `limit` uploads of all buckets that expired at `now` or before, also completed ones, after this one in the order of expiry and id. */
export const expiredMultiparts = (
  now: number,
  limit: number,
  after: Pick<NewMultipart, 'expiresAt' | 'id'> | null = null,
): Query<Pick<NewMultipart, 'id' | 'bucketId' | 'expiresAt'>[]> =>
  all(
    (row) => ({ id: uploadIdOf(row, 0), bucketId: bucketIdOf(row, 1), expiresAt: integer(row, 2) }),
    `SELECT id, bucket_id, expires_at FROM object_uploads
    WHERE expires_at <= $1 AND (expires_at, id) > ($2, $3) ORDER BY expires_at, id LIMIT $4`,
    ...[now, after?.expiresAt ?? Number.MIN_SAFE_INTEGER, after?.id ?? '', limit],
  )

// Only the functions below write the rows. They also update the reservations of the bucket: an upload reserves one item and the bytes of its parts.

/** Creates an upload. Throws Fault `quota-exceeded`, `token-limit-exceeded` and `bucket-unknown`. */
export function* createMultipart(
  bucketId: BucketId,
  upload: Omit<NewMultipart, 'bucketId'>,
): Work<undefined> {
  const { id, key, headers, isPublic, checksum, createdAt, expiresAt, tokenId, limitedBy } = upload
  yield* reserve({ bucketId, limitedBy }, { items: 1, bytes: 0 })
  yield* write(
    `INSERT INTO object_uploads (id, bucket_id, key, headers, public, checksum, created_at, expires_at, token_id, limited_by)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    ...[id, bucketId, Buffer.from(key), headers, isPublic ? 1 : 0, checksum, createdAt, expiresAt],
    ...[tokenId, limitedBy],
  )
}

/**
 * Adds a part whose blob is committed, or replaces the one with its number, and extends the expiry of the upload. Returns the ids of blobs to be deleted,
 * which have tombstones; null if there is no such unfinished upload. Throws Fault `quota-exceeded` and `token-limit-exceeded`.
 */
export function* putPart(
  bucketId: BucketId,
  uploadId: UploadId,
  part: StoredPart,
  expiresAt: number,
): Work<readonly ItemId[] | null> {
  const upload = yield* findUnfinished(bucketId, uploadId)
  if (upload === null) return null
  const { number, itemId, size, etag, checksum, storedAt } = part
  const replaced = yield* removeParts(uploadId, number)
  yield* reserve(upload, { items: 0, bytes: size - replaced.bytes })
  yield* write(
    `INSERT INTO object_parts (upload_id, number, item_id, size, etag, checksum, stored_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    ...[uploadId, number, itemId, size, etag, checksum, storedAt],
  )
  yield* requireOwnId(itemId)
  yield* write('DELETE FROM intents WHERE id = $1', itemId)
  yield* write('UPDATE object_uploads SET expires_at = $1 WHERE id = $2', expiresAt, uploadId)
  return replaced.ids
}

/** After the insertion, for whose lock the retirement of ids waits. */
function* requireOwnId(id: ItemId): Work<void> {
  const isTaken = yield* first(
    () => true,
    'SELECT 1 FROM retired WHERE id = $1 UNION ALL SELECT 1 FROM tombstones WHERE id = $1',
    id,
  )
  if (isTaken) throw new Error('the bytes of this part were set aside by a check, or are being deleted')
}

/** A part of which an object is made, as the caller has read it. */
type ChosenPart = Pick<StoredPart, 'number' | 'itemId'>

/**
 * What became of an upload that was to be completed: the object, with the ids of blobs to be deleted, which have tombstones; the object that it had become
 * before; or why the key was not changed. `changed` means that its parts are no longer these.
 */
export type Completion =
  | { readonly outcome: 'completed'; readonly tombstones: readonly ItemId[] }
  | { readonly outcome: 'repeated'; readonly upload: Multipart }
  | { readonly outcome: 'unknown' | 'changed' }
  | { readonly outcome: 'refused'; readonly refused: KeyRefusal }

/** The most parts of an upload. */
const maxParts = 10_000

/**
 * Adds the object that consists of these parts, as putKey, and removes the upload with all parts, in one transaction. A record of the object stays until
 * `keptUntil`. Throws Fault `quota-exceeded` and `token-limit-exceeded`.
 */
export function* completeMultipart(
  bucketId: BucketId,
  id: UploadId,
  chosen: readonly ChosenPart[],
  added: NewKey & { readonly parts: string },
  { keptUntil, ...replacement }: Replacement & { readonly keptUntil: number },
  by?: Actor,
  now = Date.now(),
): Work<Completion> {
  const upload = yield* findMultipart(bucketId, id)
  if (upload === null) return { outcome: 'unknown' }
  if (upload.completed !== null) return { outcome: 'repeated', upload }
  const stored = new Map((yield* listParts(id, 0, maxParts)).map((part) => [part.number, part]))
  // By their blobs: equal etags do not prove that the bytes are those that were read.
  if (chosen.some(({ number, itemId }) => stored.get(number)?.itemId !== itemId))
    return { outcome: 'changed' }
  const freed = yield* freeKey(bucketId, added.key, replacement, by, now)
  if (freed.refused !== null) return { outcome: 'refused', refused: freed.refused }
  // The item takes the place of what is reserved for it.
  const { item, etag, parts, headers } = added
  const bytesOfParts = [...stored.values()].reduce((sum, { size }) => sum + size, 0)
  yield* release(upload, { items: 1, bytes: bytesOfParts })
  const more = { items: 1, bytes: item.size }
  yield* countLimited(upload.limitedBy, more, { used: more })
  yield (engine) => engine.requireRoom(bucketId, more)
  const { bytes: _bytes, by: _by, ...described } = item
  yield* bindKey(bucketId, added, by)
  const { ids } = yield* removeParts(id, null)
  yield* write(
    'UPDATE object_uploads SET item = $2, etag = $3, parts = $4, headers = $5, expires_at = $6 WHERE id = $1',
    ...[id, serializeItems([described]), etag, parts, headers, keptUntil],
  )
  return { outcome: 'completed', tombstones: [...freed.tombstones, ...ids] }
}

/**
 * Removes an unfinished upload with its parts, or, with `expiredAt`, any upload that expired then or before. Returns the ids of the blobs of its parts,
 * which have tombstones; null if there is no such upload.
 */
export function* removeMultipart(
  bucketId: BucketId,
  id: UploadId,
  expiredAt: number | null = null,
): Work<readonly ItemId[] | null> {
  const upload = yield* findMultipart(bucketId, id)
  if (upload === null || (expiredAt === null ? upload.completed !== null : upload.expiresAt > expiredAt))
    return null
  const ids = upload.completed === null ? yield* releaseParts(upload) : []
  yield* write('DELETE FROM object_uploads WHERE id = $1', id)
  return ids
}

/** Removes uploads of a deleted bucket, at least one if there is one, until they had `limit` parts. Returns the ids of the blobs of their parts, which have tombstones. */
export function* removeMultipartsOf(bucketId: BucketId, limit: number): Work<readonly ItemId[]> {
  const removed: ItemId[] = []
  // An upload without parts counts too.
  for (let count = 0; count < limit; ) {
    const next = yield* first(
      (row) => uploadIdOf(row, 0),
      'SELECT id FROM object_uploads WHERE bucket_id = $1 ORDER BY id LIMIT 1',
      bucketId,
    )
    if (next === null) break
    const ids = (yield* removeMultipart(bucketId, next, Number.MAX_SAFE_INTEGER)) ?? []
    removed.push(...ids)
    count += 1 + ids.length
  }
  return removed
}

/** Removes the parts of an unfinished upload and what it reserves. Returns the ids of their blobs, which have tombstones. */
function* releaseParts(upload: Multipart): Work<readonly ItemId[]> {
  const { ids, bytes } = yield* removeParts(upload.id, null)
  yield* release(upload, { items: 1, bytes })
  return ids
}

/** Removes one part, or all if `number` is null. */
function* removeParts(id: UploadId, number: number | null): Work<{ ids: readonly ItemId[]; bytes: number }> {
  const which = number === null ? 'upload_id = $1' : 'upload_id = $1 AND number = $2'
  const values = number === null ? [id] : [id, number]
  yield* write(
    `INSERT INTO tombstones (id) SELECT item_id FROM object_parts WHERE ${which} ON CONFLICT DO NOTHING`,
    ...values,
  )
  const removed = yield* all(
    (row) => ({ id: itemIdOf(row, 0), size: integer(row, 1) }),
    `DELETE FROM object_parts WHERE ${which} RETURNING item_id, size`,
    ...values,
  )
  return { ids: removed.map(({ id }) => id), bytes: removed.reduce((sum, { size }) => sum + size, 0) }
}

function* findUnfinished(bucketId: BucketId, id: UploadId): Query<Multipart | null> {
  const upload = yield* findMultipart(bucketId, id)
  return upload?.completed === null ? upload : null
}

export const reads = { findMultipart, listParts, listMultiparts, expiredMultiparts }

export const writes = {
  ...writesOf({ createMultipart, putPart, removeMultipart }, { locks: ofBucket }),
  ...auditedWritesOf({ completeMultipart }, { locks: ofBucket, changesItems: true }),
}
