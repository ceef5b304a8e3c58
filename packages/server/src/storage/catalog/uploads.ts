import type { ItemId, UploadId } from '../../core/ids.ts'
import type { Amount } from '../../core/quotas.ts'
import type { Actor } from '../../core/token-rules.ts'
import { countLimited } from './access/token-limits.ts'
import { addedBy } from './audit/audit-events.ts'
import { auditedWritesOf, ofBucket, ofUpload, writesOf } from './declarations.ts'
import type { AddedItem, BucketId, TokenId } from './records.ts'
import {
  all,
  bucketIdOf,
  bytes,
  eachEngine,
  first,
  integer,
  integerOrNull,
  itemIdOf,
  type Query,
  type Row,
  text,
  textOrNull,
  tokenIdOrNull,
  uploadIdOf,
  type Work,
  write,
} from './statements.ts'

/** A new resumable upload. */
export interface NewUpload {
  readonly id: UploadId
  readonly bucketId: BucketId
  /** Bytes of the complete file; null while unknown. */
  readonly length: number | null
  /** Upload-Metadata exactly as sent; null if there was none. */
  readonly metadata: string | null
  readonly filename: string | null
  readonly declaredType: string | null
  /** The id that the item will have. */
  readonly itemId: ItemId
  /** Milliseconds since 1970. */
  readonly expiresAt: number
  /** The token that created it; null if it is not known. */
  readonly tokenId: TokenId | null
  /** The limits in which it counts (GrantedLimits.id); null for none. */
  readonly limitedBy: TokenId | null
}

export interface Upload extends NewUpload {
  /** Bytes that are received and synced. */
  readonly offset: number
  /** True once the item was added, even if it was deleted since. */
  readonly finished: boolean
}

/** What a remote blob store holds of an upload. */
export interface UploadParts {
  /** The store's id of the multipart upload; null before the first part. */
  readonly multipart: string | null
  /** In the order of their bytes. */
  readonly parts: readonly UploadPart[]
}

interface UploadPart {
  /** From 1. */
  readonly number: number
  /** Bytes. */
  readonly size: number
  readonly etag: string
}

/** Bytes that were received: parts in the blob store, and a piece, too short for a part, for the catalog. */
interface StoredParts {
  /** They follow the recorded parts, and contain the bytes of the recorded pieces. */
  readonly parts: readonly UploadPart[]
  /** May be empty. */
  readonly piece: Uint8Array
}

/** A change of an upload's offset. `expiresAt` is in milliseconds since 1970. */
interface OffsetMove {
  readonly from: number
  readonly to: number
  readonly expiresAt: number
}

const uploadColumns =
  'id, bucket_id, length, received, metadata, filename, declared_type, item_id, finished, expires_at, token_id, limited_by'

const readUpload = (row: Row): Upload => ({
  id: uploadIdOf(row, 0),
  bucketId: bucketIdOf(row, 1),
  length: integerOrNull(row, 2),
  offset: integer(row, 3),
  metadata: textOrNull(row, 4),
  filename: textOrNull(row, 5),
  declaredType: textOrNull(row, 6),
  itemId: itemIdOf(row, 7),
  finished: integer(row, 8) === 1,
  expiresAt: integer(row, 9),
  tokenId: tokenIdOrNull(row, 10),
  limitedBy: tokenIdOrNull(row, 11),
})

const uploadRows = `SELECT ${uploadColumns} FROM uploads`

/** Null also for an unfinished upload that names an item: its bytes are those of the item. */
export const findUpload = (id: UploadId): Query<Upload | null> =>
  first(
    readUpload,
    `${uploadRows} WHERE id = $1 AND (finished = 1 OR NOT EXISTS (SELECT 1 FROM items WHERE items.id = item_id))`,
    id,
  )

/** The finished upload that has become this item; null if there is none, or if it has expired and was removed. */
export const uploadOfItem = (id: ItemId): Query<Upload | null> =>
  first(readUpload, `${uploadRows} WHERE item_id = $1 AND finished = 1`, id)

export const unfinishedUploads = (): Query<Upload[]> => all(readUpload, `${uploadRows} WHERE finished = 0`)

/** Up to `limit` uploads, finished or not, that expired at `now` or before, in the order of expiry and id: those that follow `after`. */
export const expiredUploads = (
  now: number,
  limit: number,
  after: Pick<Upload, 'expiresAt' | 'id'> | null = null,
): Query<Upload[]> =>
  all(
    readUpload,
    `${uploadRows} WHERE expires_at <= $1 AND (expires_at, id) > ($2, $3) ORDER BY expires_at, id LIMIT $4`,
    ...[now, after?.expiresAt ?? Number.MIN_SAFE_INTEGER, after?.id ?? '', limit],
  )

/** Uploads of the bucket, finished or not. */
export const uploadsOf = (bucketId: BucketId): Query<Upload[]> =>
  all(readUpload, `${uploadRows} WHERE bucket_id = $1`, bucketId)

/** What a remote blob store holds of an upload; null if there is no such unfinished upload. */
export function* findUploadParts(id: UploadId): Query<UploadParts | null> {
  // One statement, and so one snapshot.
  const rows = yield* all(
    (row) => ({
      multipart: textOrNull(row, 0),
      part: row[1] === null ? [] : [{ number: integer(row, 1), size: integer(row, 2), etag: text(row, 3) }],
    }),
    `SELECT multipart, number, size, etag FROM uploads LEFT JOIN upload_parts ON upload_id = id
    WHERE id = $1 AND finished = 0 ORDER BY number`,
    id,
  )
  const [upload] = rows
  return upload === undefined
    ? null
    : { multipart: upload.multipart, parts: rows.flatMap(({ part }) => part) }
}

/** The bytes of the upload that are in the catalog, in order. They follow the bytes of its parts. */
export const findUploadPieces = (id: UploadId): Query<Uint8Array[]> =>
  all((row) => bytes(row, 0), 'SELECT bytes FROM upload_pieces WHERE upload_id = $1 ORDER BY number', id)

// Only the functions below write the rows of uploads. They also update the reservations of the bucket.

/** Creates an upload, and reserves one item and its length if known. Throws Fault `quota-exceeded` and `token-limit-exceeded`. */
export function* createUpload(upload: NewUpload): Work<undefined> {
  const { id, bucketId, length, metadata, filename, declaredType, itemId, expiresAt, tokenId, limitedBy } =
    upload
  yield* reserve(upload, reservedBy({ length, offset: 0 }))
  yield* write(
    `INSERT INTO uploads (id, bucket_id, length, metadata, filename, declared_type, item_id, expires_at, token_id, limited_by)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    ...[id, bucketId, length, metadata, filename, declaredType, itemId, expiresAt, tokenId, limitedBy],
  )
}

/** Sets and reserves the length if it was unknown; false if there is no such upload, or if it has more bytes. Throws as createUpload. */
export function* declareLength(id: UploadId, length: number): Work<boolean> {
  const upload = yield* findUnfinished(id)
  if (upload?.length !== null || length < upload.offset) return false
  yield* reserve(upload, { items: 0, bytes: length - upload.offset })
  yield* write('UPDATE uploads SET length = $1 WHERE id = $2', length, id)
  return true
}

/**
 * Sets an unfinished upload's offset if it was `from`, else returns false; also if `to` is its length, which only finishUpload reaches: another
 * server may have declared it since the upload was read. Throws as createUpload.
 */
export function* moveUpload(id: UploadId, from: number, to: number, expiresAt: number): Work<boolean> {
  const upload = yield* findUnfinished(id)
  if (upload?.offset !== from || (upload.length !== null && to >= upload.length)) return false
  if (upload.length === null) yield* reserve(upload, { items: 0, bytes: to - from })
  yield* write('UPDATE uploads SET received = $1, expires_at = $2 WHERE id = $3', to, expiresAt, id)
  return true
}

/** Records the id of the multipart upload, unless one is recorded. Returns the recorded one; null as findUploadParts. */
export const beginParts = (id: UploadId, multipart: string): Work<string | null> =>
  first(
    (row) => text(row, 0),
    'UPDATE uploads SET multipart = coalesce(multipart, $1) WHERE id = $2 AND finished = 0 RETURNING multipart',
    ...[multipart, id],
  )

/** As moveUpload; in the same transaction adds the parts and the piece. If there are parts, removes the pieces before them. */
export function* storeParts(
  id: UploadId,
  { parts, piece }: StoredParts,
  { from, to, expiresAt }: OffsetMove,
): Work<boolean> {
  if (!(yield* moveUpload(id, from, to, expiresAt))) return false
  for (const { number, size, etag } of parts)
    yield* write(
      'INSERT INTO upload_parts (upload_id, number, size, etag) VALUES ($1, $2, $3, $4)',
      ...[id, number, size, etag],
    )
  if (parts.length > 0) yield* write('DELETE FROM upload_pieces WHERE upload_id = $1', id)
  if (piece.byteLength > 0) yield* addPiece(id, piece)
  return true
}

/** Pieces are joined up to this length, so that short chunks do not become many rows. Bytes. */
const maxPiece = 65_536

// SQLite joins bytes as text.
const joinPiece = eachEngine((engine) => {
  const joined = engine === 'sqlite' ? 'CAST(bytes || $3 AS BLOB)' : 'bytes || $3'
  return `UPDATE upload_pieces SET bytes = ${joined} WHERE upload_id = $1 AND number = $2`
})

function* addPiece(id: UploadId, piece: Uint8Array): Work<void> {
  const last = yield* first(
    (row) => ({ number: integer(row, 0), size: integer(row, 1) }),
    `SELECT number, length(bytes) FROM upload_pieces WHERE upload_id = $1 ORDER BY number DESC LIMIT 1`,
    id,
  )
  const { number, size } = last ?? { number: -1, size: maxPiece }
  if (size + piece.byteLength <= maxPiece) yield* write(joinPiece, id, number, piece)
  else
    yield* write(
      'INSERT INTO upload_pieces (upload_id, number, bytes) VALUES ($1, $2, $3)',
      ...[id, number + 1, piece],
    )
}

/**
 * Adds the item, and its bytes if given, and marks the upload as finished in one transaction; false if no unfinished upload
 * has this id and the length `received`, by default the item's size. Throws Fault `quota-exceeded`.
 */
export function* finishUpload(
  id: UploadId,
  added: AddedItem,
  expiresAt: number,
  by?: Actor,
  received = added.size,
): Work<boolean> {
  const upload = yield* findUnfinished(id)
  if (upload?.length !== received) return false
  const reserved = reservedBy(upload)
  // Other reservations do not count, because this one came first.
  yield (engine) => engine.requireReserved(upload.bucketId, reserved)
  yield* release(upload, reserved, { items: 1, bytes: added.size })
  yield (engine) => engine.append(upload.bucketId, addedBy([added], by))
  yield* write(
    'UPDATE uploads SET received = length, finished = 1, item_id = $1, expires_at = $2 WHERE id = $3',
    ...[added.id, expiresAt, id],
  )
  yield* removeParts(id)
  return true
}

/**
 * Removes the upload and releases its reservation; its item, if it has one, stays. With `onlyUnfinished`, keeps a finished
 * upload, and with `expiredAt` one that expires later. False if there is no such upload.
 */
export function* removeUpload(
  id: UploadId,
  onlyUnfinished = false,
  expiredAt: number | null = null,
): Work<boolean> {
  const upload = yield* first(readUpload, `${uploadRows} WHERE id = $1`, id)
  if (upload === null || (onlyUnfinished && upload.finished)) return false
  if (expiredAt !== null && upload.expiresAt > expiredAt) return false
  if (!upload.finished) {
    yield* release(upload, reservedBy(upload))
    yield* removeParts(id)
  }
  return (yield* write('DELETE FROM uploads WHERE id = $1', id)) === 1
}

const findUnfinished = (id: UploadId): Query<Upload | null> =>
  first(readUpload, `${uploadRows} WHERE id = $1 AND finished = 0`, id)

function* removeParts(id: UploadId): Work<void> {
  yield* write('DELETE FROM upload_parts WHERE upload_id = $1', id)
  yield* write('DELETE FROM upload_pieces WHERE upload_id = $1', id)
}

/** An unfinished upload reserves one item and its length, or its offset while the length is unknown. */
const reservedBy = ({ length, offset }: Pick<Upload, 'length' | 'offset'>): Amount => ({
  items: 1,
  bytes: length ?? offset,
})

type Counted = Pick<NewUpload, 'bucketId' | 'limitedBy'>

const nothing: Amount = { items: 0, bytes: 0 }

/** Throws Fault `quota-exceeded` and `token-limit-exceeded`. */
export function* reserve({ bucketId, limitedBy }: Counted, more: Amount): Work<void> {
  yield* countLimited(limitedBy, more, { reserved: more })
  yield (engine) => engine.requireRoom(bucketId, more)
  yield (engine) => engine.reserve(bucketId, more)
}

/** `used` is what the upload has stored. The reservation has been within the limits of its token, so that this is too. */
export function* release(
  { bucketId, limitedBy }: Counted,
  { items, bytes }: Amount,
  used: Amount = nothing,
): Work<void> {
  const reserved = { items: -items, bytes: -bytes }
  yield* countLimited(limitedBy, nothing, { reserved, used })
  yield (engine) => engine.reserve(bucketId, reserved)
}

export const reads = {
  ...{ findUpload, uploadOfItem, unfinishedUploads, expiredUploads, uploadsOf },
  ...{ findUploadParts, findUploadPieces },
}

export const writes = {
  ...writesOf({ createUpload }, { locks: ({ bucketId }) => ofBucket(bucketId) }),
  ...writesOf({ declareLength, moveUpload, storeParts, removeUpload }, { locks: ofUpload }),
  ...auditedWritesOf({ finishUpload }, { locks: ofUpload, changesItems: true }),
  ...writesOf({ beginParts }),
}
