import type { Actor } from '../core/actor.ts'
import type { MediaId } from '../core/media-id.ts'
import type { AuditEvent } from './audit-log/events.ts'
import type { KeyCatalog } from './key-catalog.ts'
import type {
  Bucket,
  BucketId,
  BucketSettings,
  CatalogStatistics,
  ContentId,
  DeletedChunk,
  EditedMedia,
  Grant,
  IdempotentRequest,
  ItemEdit,
  ItemPlace,
  ItemRows,
  ItemSelection,
  ItemTexts,
  Media,
  NamedBucket,
  NewMedia,
  NewMediaContent,
  NewPreview,
  PageRows,
  RemovedMedia,
  Servability,
  TokenId,
  TrashedItem,
  TrashState,
  UpkeepRun,
} from './records.ts'
import type { TokenCatalog } from './token-catalog.ts'
import type { UploadCatalog } from './upload-catalog.ts'

/**
 * Stores buckets, media, tokens, keys and uploads. A change is durable when its promise resolves. A read returns every change whose promise
 * resolved before the read began, including changes of other processes. Throws Fault `catalog-busy`, `overloaded` and
 * `storage-full`; any other error is unexpected. `by` is who makes a change, for the audit log: the service itself if it is left out.
 */
export interface Catalog extends TokenCatalog, KeyCatalog, UploadCatalog {
  /** A random value that identifies this data. A restore generates a new one, so that no revision identifies two states. */
  readonly epoch: string

  /** The current state of the token and its bucket; null if no token has this SHA-256. Reflects every change that was committed before the call. */
  findGrant(tokenHash: Uint8Array): Promise<Grant | null>

  /** What a user with this id has who has no row yet, in a bucket: as findGrant, without scopes. Null if there is no such bucket. */
  newUserGrant(bucket: string, id: TokenId): Promise<Grant | null>

  /** Page `page` (from 1) of ten items in upload order; no rows past the end. O(log n) at any depth. */
  page(bucketId: BucketId, page: number): Promise<PageRows>

  /**
   * Up to `limit` of the selected items: those that follow `after`, or the first ones if it is null. Takes O(log n) and a time
   * for each returned item; with a name, see docs/architecture/listing.md, Search by name. Throws Fault `token-revoked` if the bucket was deleted.
   */
  items(selection: ItemSelection, after: ItemPlace | null, limit: number): Promise<ItemRows>

  /**
   * Indexes the names that are not indexed. Resolves when nothing is left that another process is not doing, also after an error.
   * Call it at the start; then the catalog indexes names itself, as items are added.
   */
  indexNames(): Promise<void>

  /** The current row of the item with this id, in any bucket. Never cached. */
  media(id: MediaId): Promise<Media | null>

  /**
   * For each id, whether an item of any bucket has it and can be served to everybody; all as of one moment. Reflects every change that
   * was committed before the call.
   */
  servability(ids: readonly MediaId[]): Promise<readonly Servability[]>

  /** Bytes that are stored in the catalog; null if their item was deleted. */
  content(id: ContentId): Promise<Uint8Array<ArrayBuffer> | null>

  /** Appends the items to the bucket in this order, with their bytes: all or none. Throws Fault `quota-exceeded`. */
  addMedia(bucketId: BucketId, items: readonly NewMediaContent[], by?: Actor): Promise<void>

  /**
   * As addMedia, once for each key of a token: returns the items of the first request with the key, even if they were deleted
   * since. Throws Fault `idempotency-key-reused` if its fingerprint differs.
   */
  addMediaOnce(
    bucketId: BucketId,
    items: readonly NewMediaContent[],
    request: IdempotentRequest,
    by?: Actor,
  ): Promise<readonly NewMedia[]>

  /** The items of the first request with the key; null if there is none. Throws as addMediaOnce. */
  findRepeated(request: IdempotentRequest): Promise<readonly NewMedia[] | null>

  /** Removes the records of requests that expired at `now` or before; returns how many. */
  forgetRequests(now: number): Promise<number>

  /**
   * Removes the items with these ids and their bytes in one transaction; ignores ids of other buckets. Adds a tombstone for each item whose bytes
   * or variants may be in the blob store. If the bucket has a trash, moves the items there instead. `ids` has no repeated id.
   */
  removeMedia(bucketId: BucketId, ids: readonly MediaId[], by?: Actor, now?: number): Promise<RemovedMedia>

  /**
   * Moves items from the trash back to their earlier places, if they have not expired. Returns the ids of the moved items. Throws Fault
   * `quota-exceeded`.
   */
  restoreMedia(
    bucketId: BucketId,
    ids: readonly MediaId[],
    by?: Actor,
    now?: number,
  ): Promise<readonly MediaId[]>

  /** Removes items of the trash permanently. Ignores ids of other items. The result is as of removeMedia. */
  purgeMedia(bucketId: BucketId, ids: readonly MediaId[], by?: Actor): Promise<RemovedMedia>

  /** Removes up to 500 items of the bucket that have expired, as removeMedia does, permanently. */
  expireItems(bucketId: BucketId, now?: number): Promise<RemovedMedia>

  /** Buckets that may have items that expired at `now` or before. */
  expiringBuckets(now: number): Promise<readonly BucketId[]>

  trashState(bucketId: BucketId): Promise<TrashState>

  /** Up to `limit` items of the trash that have not expired, last deleted first: those after the item with the number `after`. */
  trash(
    bucketId: BucketId,
    after: number | null,
    limit: number,
    now?: number,
  ): Promise<readonly TrashedItem[]>

  /** Up to `limit` items of all trashes that expired at `now` or before. */
  expiredTrash(
    now: number,
    limit: number,
  ): Promise<readonly { readonly bucketId: BucketId; readonly id: MediaId }[]>

  /** Changes an item of the bucket. With `expected`, only if it has these texts. An edit without a change is not a change of the bucket. */
  editMedia(
    bucketId: BucketId,
    id: MediaId,
    edit: ItemEdit,
    expected: ItemTexts | null,
    by?: Actor,
  ): Promise<EditedMedia>

  /**
   * Records what the first render of the item's variants has found, and increments the bucket's revision. Known values stay, and
   * nothing changes if the item has a ThumbHash.
   */
  setPreview(bucketId: BucketId, id: MediaId, preview: NewPreview): Promise<void>

  /**
   * Records that the blob store is about to commit bytes under these ids. The transaction that adds an item removes its intent,
   * so after a crash the remaining ones name all committed bytes without an item. Their deadline is `lifetime` milliseconds from now;
   * a deadline of an existing intent is only extended.
   */
  addIntents(ids: readonly MediaId[], lifetime: number): Promise<void>

  intents(): Promise<MediaId[]>

  /** The ids of intents whose deadline has passed. */
  expiredIntents(): Promise<MediaId[]>

  /**
   * Of intents whose deadline has passed, returns the ids that no item, tombstone or unfinished upload has, and reserves them
   * permanently in the same transaction: no item can have them, so their bytes can be removed.
   */
  retireIntents(ids: readonly MediaId[]): Promise<MediaId[]>

  /** Removes intents. Call it when the blob store has no bytes under these ids. */
  clearIntents(ids: readonly MediaId[]): Promise<void>

  /** Returns the ids that no item, tombstone or unfinished upload has. */
  findUnreferenced(ids: readonly MediaId[]): Promise<MediaId[]>

  /** Ids of removed items whose bytes or variants may still exist in the blob store. */
  tombstones(): Promise<MediaId[]>

  /** Removes the tombstones of items whose bytes and variants were removed. */
  clearTombstones(ids: readonly MediaId[]): Promise<void>

  bucket(id: BucketId): Promise<Bucket | null>

  bucketNamed(name: string): Promise<NamedBucket | null>

  /** Settings that are left out have their defaults. False if a bucket has this name. */
  createBucket(
    name: string,
    settings: Partial<BucketSettings>,
    createdAt: number,
    by?: Actor,
  ): Promise<boolean>

  /**
   * Revokes the tokens of the bucket and removes up to `limit` of its items, oldest first, as removeMedia does. If no items and
   * uploads are left, removes the bucket with its tokens. Its id is never reused.
   */
  deleteBucketChunk(bucketId: BucketId, limit: number, now: number, by?: Actor): Promise<DeletedChunk>

  /** By name. */
  buckets(): Promise<Bucket[]>

  /** Changes the given settings; false if there is no such bucket. */
  setBucket(name: string, settings: Partial<BucketSettings>, by?: Actor): Promise<boolean>

  statistics(): Promise<CatalogStatistics>

  /** Records a completed upkeep command; replaces the earlier record of its kind. */
  recordUpkeep(run: UpkeepRun, by?: Actor): Promise<void>

  /** Adds events to the audit log that describe no change of the catalog; nothing if the log is off. */
  recordEvents(events: readonly AuditEvent[]): Promise<void>

  /** Removes up to `limit` events of the audit log that were recorded before this time, earliest first; returns how many. */
  removeEvents(before: number, limit: number): Promise<number>

  /** The identity of the directory of the bytes; null before the first start. */
  blobsIdentity(): Promise<string | null>

  /** Sets the identity if there is none. Returns the one that is set: another server may have been first. */
  claimBlobsIdentity(identity: string): Promise<string>

  /** Ids of some items whose bytes are in the blob store: the first and the last ones. */
  someWithBlobs(): Promise<MediaId[]>

  /** True if the catalog has no bucket. */
  isNew(): Promise<boolean>

  /**
   * Waits until no change of an earlier process can be committed any more: a database may still be committing what a process sent
   * before it was killed. For a start that compares rows with files.
   */
  settle(): Promise<void>

  /** Throws if rows cannot be read. */
  checkReads(): Promise<void>

  /** Throws if rows cannot be written. */
  checkWrites(): Promise<void>

  close(): Promise<void>
}
