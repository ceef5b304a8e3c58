import type { MediaId } from '../core/media-id.ts'
import type { Quota } from '../core/quota.ts'
import type { Scope } from '../core/scopes.ts'
import type { UploadId } from '../core/upload-id.ts'

declare const brand: unique symbol
export type BucketId = number & { readonly [brand]: 'BucketId' }
export type TokenId = string & { readonly [brand]: 'TokenId' }

/** What one statement tells of a presented token and its bucket; times are milliseconds since 1970. */
export interface Grant {
  readonly tokenId: TokenId
  readonly bucketId: BucketId
  readonly scopes: ReadonlySet<Scope>
  readonly expiresAt: number | null
  readonly revokedAt: number | null
  readonly lastUsedAt: number | null
  /** Grows with every change of the bucket's items; with the catalog's epoch it names one state for ever. */
  readonly revision: number
  readonly total: number
}

/** One page's rows and the numbers that belong to them, from one snapshot. */
export interface PageRows {
  readonly revision: number
  readonly total: number
  readonly rows: readonly { readonly id: MediaId; readonly extension: string | null }[]
}

/** An item as it is about to be stored. */
export interface NewMedia {
  readonly id: MediaId
  readonly filename: string | null
  readonly contentType: string
  /** Without the dot; null where the type is unknown. */
  readonly extension: string | null
  /** Bytes. */
  readonly size: number
  /** 32 bytes; null only for rows that were seeded without bytes. */
  readonly sha256: Uint8Array | null
  readonly width: number | null
  readonly height: number | null
  /** Milliseconds since 1970; shown, never used for order. */
  readonly createdAt: number
}

export interface Media extends NewMedia {
  readonly bucketId: BucketId
}

export interface TokenRecord {
  readonly id: TokenId
  readonly bucket: string
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly createdAt: number
  readonly expiresAt: number | null
  readonly lastUsedAt: number | null
  readonly revokedAt: number | null
}

export interface NewToken {
  readonly id: TokenId
  /** The bucket's name; the bucket is made if it does not exist. */
  readonly bucket: string
  readonly name: string
  /** SHA-256 of the token, 32 bytes. */
  readonly hash: Uint8Array
  readonly scopes: readonly Scope[]
  readonly createdAt: number
  readonly expiresAt: number | null
}

/** A request that may be sent again and must have its effect once: who sent it, and what it carries. */
export interface IdempotentRequest {
  readonly tokenId: TokenId
  readonly key: string
  /** 32 bytes; tells another content under the same key. */
  readonly fingerprint: Uint8Array
  /** Milliseconds since 1970: what was kept until before `now` counts as forgotten, this is kept until `expiresAt`. */
  readonly now: number
  readonly expiresAt: number
}

/** An upload in pieces as it begins. */
export interface NewUpload {
  readonly id: UploadId
  readonly bucketId: BucketId
  /** Bytes of the whole; null until the client tells. */
  readonly length: number | null
  /** Upload-Metadata exactly as sent; null where there was none. */
  readonly metadata: string | null
  readonly filename: string | null
  readonly declaredType: string | null
  /** The id that the item will have. */
  readonly mediaId: MediaId
  /** Milliseconds since 1970. */
  readonly expiresAt: number
}

export interface Upload extends NewUpload {
  /** Bytes that have arrived and are synced. */
  readonly offset: number
  /** The item exists, or has existed. */
  readonly finished: boolean
}

export interface Bucket extends Quota {
  readonly name: string
  readonly items: number
  readonly bytes: number
  /** What the unfinished uploads have reserved of the quota. */
  readonly reservedItems: number
  readonly reservedBytes: number
}

export interface NamedBucket extends Bucket {
  readonly id: BucketId
}

/** What one step of a bucket's deletion did. */
export interface DeletedChunk {
  /** Items whose rows are gone and whose bytes may still be there. */
  readonly removed: readonly MediaId[]
  /** The bucket itself is gone: it had no items and uploads left. */
  readonly isDeleted: boolean
}

/** An upkeep command that ran to its end. */
export interface UpkeepRun {
  readonly kind: 'backup' | 'fsck'
  /** Milliseconds since 1970. */
  readonly finishedAt: number
  /** What it found wrong and could not repair or copy. */
  readonly faults: number
}

/** What an operator watches. All of it is read without a scan of items. */
export interface CatalogStatistics {
  readonly items: number
  readonly bytes: number
  readonly unfinishedUploads: number
  /** What the unfinished uploads have reserved: their lengths where known, otherwise what has arrived. */
  readonly unfinishedBytes: number
  /** Changes that wait for the writer or are under way in it. */
  readonly waitingChanges: number
  /** Size of the write-ahead log. Bytes. */
  readonly logBytes: number
  /** The last of each kind that has ever run. */
  readonly upkeep: readonly UpkeepRun[]
}

/**
 * The rows: buckets, media, tokens, uploads. A change is durable when its promise resolves; a read sees every change whose
 * promise resolved before the read began, those of other processes included. Throws Fault `catalog-busy`
 * and `storage-full`; any other error is unexpected.
 */
export interface Catalog {
  /** Random name of this body of data; restoring a backup renews it, so that no revision means two states. */
  readonly epoch: string

  /** The token's and its bucket's present state; null when no token has this SHA-256. Never cached. */
  authorise(tokenHash: Uint8Array): Promise<Grant | null>

  /** Page `page` (from 1) of ten items in upload order; no rows past the end. O(log n) at any depth. */
  page(bucketId: BucketId, page: number): Promise<PageRows>

  /** An item by its id, whichever bucket it is in. */
  media(id: MediaId): Promise<Media | null>

  /** A check found the item's bytes changed, and none since has found them right. */
  isDamaged(id: MediaId): Promise<boolean>

  /** Appends the items to the bucket in the order given: all of them or none. Throws Fault `quota-exceeded`. */
  addMedia(bucketId: BucketId, items: readonly NewMedia[]): Promise<void>

  /**
   * The same, once for each key of a token: answers the items of the first such request, whether or not they still
   * exist. Throws Fault `idempotency-key-reused` where that had another fingerprint.
   */
  addMediaOnce(
    bucketId: BucketId,
    items: readonly NewMedia[],
    request: IdempotentRequest,
  ): Promise<readonly NewMedia[]>

  /** What `addMediaOnce` would answer if the request was seen before; null if it was not. */
  findRepeated(request: IdempotentRequest): Promise<readonly NewMedia[] | null>

  /** Forgets the keyed requests that were kept until `now` or before; says how many. */
  forgetRequests(now: number): Promise<number>

  /** Removes the item and leaves a tombstone for its bytes; false when this bucket has no such item. */
  removeMedia(bucketId: BucketId, id: MediaId): Promise<boolean>

  /** Those ids whose bytes nothing accounts for: no item, no removed one, no unfinished upload. */
  findUnreferenced(ids: readonly MediaId[]): Promise<MediaId[]>

  /** Ids removed whose bytes may still be there. */
  tombstones(): Promise<MediaId[]>

  /** Forgets tombstones whose bytes are gone. */
  clearTombstones(ids: readonly MediaId[]): Promise<void>

  /** Begins an upload and reserves an item and its length, where known. Throws Fault `quota-exceeded`. */
  createUpload(upload: NewUpload): Promise<void>

  upload(id: UploadId): Promise<Upload | null>

  /** Sets the length where it was unknown, and reserves it; false where there is no such upload. Throws as above. */
  declareLength(id: UploadId, length: number): Promise<boolean>

  /** Sets an unfinished upload's offset if it was `from`, else answers false. Throws Fault `quota-exceeded`. */
  moveUpload(id: UploadId, from: number, to: number, expiresAt: number): Promise<boolean>

  /**
   * Adds the item and marks the upload finished, in one; false where no unfinished upload has this id and the
   * item's size. Throws Fault `quota-exceeded`.
   */
  finishUpload(id: UploadId, item: NewMedia, expiresAt: number): Promise<boolean>

  /** Forgets the upload, and frees what it reserved; its item, if it has one, stays. False where there is none. */
  removeUpload(id: UploadId): Promise<boolean>

  unfinishedUploads(): Promise<Upload[]>

  /** Uploads, finished or not, that were kept until `now` or before. */
  expiredUploads(now: number): Promise<Upload[]>

  bucket(id: BucketId): Promise<Bucket | null>

  bucketNamed(name: string): Promise<NamedBucket | null>

  /** Uploads of the bucket, finished or not. */
  uploadsOf(bucketId: BucketId): Promise<Upload[]>

  /** False where a bucket has this name. */
  createBucket(name: string, quota: Quota, createdAt: number): Promise<boolean>

  /**
   * Revokes the tokens of the bucket and removes up to `limit` of its items, oldest first, each with a tombstone; where no
   * items and uploads are left, the bucket goes with its tokens. Its id is never used again.
   */
  deleteBucketChunk(bucketId: BucketId, limit: number, now: number): Promise<DeletedChunk>

  /** By name. */
  buckets(): Promise<Bucket[]>

  /** Changes the limits that are given; false where there is no such bucket. */
  setQuota(bucket: string, quota: Partial<Quota>): Promise<boolean>

  /** Makes the token, and its bucket if need be. */
  addToken(token: NewToken): Promise<void>

  token(id: TokenId): Promise<TokenRecord | null>

  /** All tokens, or those of one bucket, oldest first; never their hashes. */
  tokens(bucket?: string): Promise<TokenRecord[]>

  /** False when there is no such token. Revoking twice keeps the first time. */
  revokeToken(id: TokenId, at: number): Promise<boolean>

  /** Records a use; the caller decides how coarsely. */
  touchToken(id: TokenId, at: number): Promise<void>

  statistics(): Promise<CatalogStatistics>

  /** Records an upkeep command in place of the earlier one of its kind. */
  recordUpkeep(run: UpkeepRun): Promise<void>

  /** The identity of the directory that holds the bytes; null until a start has matched the two. */
  blobsIdentity(): Promise<string | null>

  setBlobsIdentity(identity: string): Promise<void>

  /** Ids of some items, the first and the last ones, that were stored with bytes. */
  someWithBytes(): Promise<MediaId[]>

  /** True when the catalog holds no bucket yet. */
  isNew(): Promise<boolean>

  /** Resolves when rows can be read now; throws otherwise. */
  checkReads(): Promise<void>

  /** Resolves when rows can be written now; throws otherwise. */
  checkWrites(): Promise<void>

  close(): Promise<void>
}
