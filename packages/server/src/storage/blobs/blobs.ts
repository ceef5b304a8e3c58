import { createHash, type Hash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { ExplainedError } from '../../core/faults.ts'
import type { ItemId, UploadId } from '../../core/ids.ts'
import type { VariantKey } from '../../core/variants.ts'
import type { ReceivedBlob } from './received-file.ts'

/** Headers of a response, which the store sends instead of its own. */
export interface SignedHeaders {
  readonly contentType: string
  readonly contentDisposition: string
  readonly cacheControl: string
}

/** An object of a remote store. */
interface RemoteContent {
  readonly type: 'object'
  /**
   * Bytes `start` to `end`, both inclusive, as the store sends them. The stream may end early, so the caller must count them. Destroy it
   * if it is not read to its end.
   */
  stream(start: number, end: number): Promise<Readable>
  /**
   * A URL with which everyone can get the object for `lifetime` milliseconds, or half of that: URLs of one object are equal for some time.
   * Null for the headers of the store.
   */
  signUrl(headers: SignedHeaders | null, lifetime: number): Promise<string>
}

/** Bytes in memory, or a file that other processes of this machine can read. */
export type LocalContent =
  | {
      readonly type: 'bytes'
      readonly bytes: Uint8Array
      /** Whether they are those of a cache: many responses share them, and they take memory once. */
      readonly isShared?: boolean
    }
  | { readonly type: 'file'; readonly path: string }

/** Bytes that other processes of this machine can read until `release` is called. */
export interface LocalBytes {
  readonly content: LocalContent
  /** False if these are only the first bytes of a blob. */
  readonly isWhole: boolean
  release(): Promise<void>
}

/** A blob opened for reading. Call either `stream` once, or `close` at the end. */
export interface OpenBlob {
  /** Bytes. */
  readonly size: number
  /** Where the bytes are. */
  readonly content: LocalContent | RemoteContent
  /** Makes the whole bytes available to other processes of this machine, also after `close`. */
  share(): Promise<LocalBytes>
  /** Fills `into` with the bytes from `position` on. One call at a time. Throws BlobTruncatedError. */
  read(into: Uint8Array, position: number): Promise<void>
  /** Bytes `start` to `end`, both inclusive. Closes the blob when it ends or is destroyed. */
  stream(start: number, end: number): Readable
  /** Waits for a read in progress. Can be called twice. */
  close(): Promise<void>
}

/** The directory of the blobs does not belong to the catalog. The message is one line and says what to do. */
export class BlobsMismatchError extends ExplainedError {
  override readonly name = 'BlobsMismatchError'
}

/** The bytes of a blob end before its size: its file was truncated after it was opened. */
export class BlobTruncatedError extends Error {
  override readonly name: string = 'BlobTruncatedError'
}

/** A blob was removed after it was opened. */
export class BlobRemovedError extends BlobTruncatedError {
  override readonly name = 'BlobRemovedError'
}

/** The system does not let this user move an entry. */
export class EntryUnmovable extends Error {
  override readonly name = 'EntryUnmovable'
}

/** Where the blobs are, as a start checks it before the store is opened. */
export interface BlobsDirectory {
  /** A path or a URL, for messages. */
  readonly path: string
  /** Parts of messages. */
  readonly advice: {
    /** What the path names. */
    readonly place: string
    /** How to use another place with a new catalog. */
    readonly catalog: string
    /** A possible reason why the bytes are missing, and what to do then. */
    readonly missing: string
    readonly cure: string
    /** What to do if another identity, or none, was found instead of this one. */
    readonly identify: (identity: string) => string
  }
  /** True if several servers can store bytes there. */
  readonly isShared: boolean
  /** Null if there is no identity. */
  readIdentity(): Promise<string | null>
  /** Durable when it resolves. */
  writeIdentity(identity: string): Promise<void>
  /** What writeAnnounced has written last; null if there is nothing. */
  readAnnounced(): Promise<string | null>
  /** Replaces what services have announced (upkeep/announced-changes.ts). Not durable when it resolves. Writes nothing if there is no identity. */
  writeAnnounced(text: string): Promise<void>
  /** Whether bytes are stored under the id. */
  has(id: ItemId): Promise<boolean>
  /** True if no blob was ever stored. */
  isEmpty(): Promise<boolean>
}

/** What a start does before it uses the store, while no other process uses it. */
export interface BlobRecovery {
  /**
   * Removes the temporary files of earlier processes, while no other process writes; or those of the worker `owner`, which has
   * ended. Returns how many.
   */
  removeTemporary(owner?: string): Promise<number>

  /**
   * Makes the partial uploads match these uploads: reverts commits, truncates to the offsets, removes all other partial
   * uploads. Returns the sizes of those that are shorter than their offset. With `isItem`, what is stored under `itemId` belongs to an item,
   * and stays.
   */
  matchUploads(
    uploads: readonly {
      readonly id: UploadId
      readonly itemId: ItemId
      readonly offset: number
      readonly isItem?: boolean
    }[],
  ): Promise<Map<UploadId, number>>
}

/** The ids under which a store is about to store bytes, as the catalog records them, so that bytes without an item are found. */
export interface IntentLog {
  /** Durable when it resolves. Extends the deadlines of recorded ids. */
  record(ids: readonly ItemId[]): Promise<void>
  clear(ids: readonly ItemId[]): Promise<void>
}

/** A variant of an item in the store. */
export interface StoredVariant {
  readonly id: ItemId
  readonly key: VariantKey
}

/** Variants of pictures. They can be rendered again, so losing one is harmless. */
export interface VariantStore {
  /**
   * Replaces an existing variant atomically. After a crash, the variant is complete or missing; after a power failure, all
   * variants may be missing.
   */
  store(id: ItemId, key: VariantKey, bytes: Uint8Array): Promise<void>

  /** As `BlobStore.open`. With `pictureSize`, also null unless a blob of this size is stored under the id. */
  open(
    id: ItemId,
    key: VariantKey,
    options?: { readonly pictureSize?: number; readonly wholeUpTo?: number },
  ): Promise<Pick<OpenBlob, 'size' | 'content' | 'read' | 'stream' | 'close'> | null>

  /** Removes all variants of the item, also of sizes that no longer exist, as `BlobStore.remove` does. */
  remove(id: ItemId): Promise<void>

  /** The stored variants of an item, or of all items. Those that are stored or removed in the meantime may be missing. */
  list(id?: ItemId): AsyncIterable<StoredVariant>

  /** Removes a variant, if it is stored. */
  removeOne(id: ItemId, key: VariantKey): Promise<void>
}

/** Stores the bytes of items. When the promise of a change resolves, the change survives a power failure. */
export interface BlobStore {
  readonly partialUploads: PartialUploadStore
  readonly variants: VariantStore
  /** Null if the store needs no recovery, because its processes share no files. */
  readonly recovery: BlobRecovery | null

  /**
   * Reads the bytes of the item `id` from the source to its end, hashes and counts them. A chunk is valid until the next one is requested.
   * Throws Fault `file-too-large` above
   * `limit` bytes and `storage-full`; leaves nothing behind when it throws.
   */
  receive(id: ItemId, source: AsyncIterable<Uint8Array>, limit: number): Promise<ReceivedBlob>

  /** The received bytes with random access, for sniffing inside containers. */
  peek(blob: ReceivedBlob): Promise<Blob>

  /** Makes at least the first `atLeast` received bytes available to other processes of this machine. */
  share(blob: ReceivedBlob, atLeast: number): Promise<LocalBytes>

  /** Opens received bytes that are not committed. */
  openReceived(blob: ReceivedBlob): Promise<OpenBlob>

  /** Stores received bytes under their ids. A store records intents before bytes can be found under an id. */
  commit(blobs: readonly ReceivedBlob[]): Promise<void>

  /**
   * Removes received bytes, also if they are committed, and their intents; no item may have them. Never throws: a later sweep or start
   * removes the rest.
   */
  discard(blobs: readonly ReceivedBlob[]): Promise<void>

  /** False while the store does not hold the bytes of the catalog, or cannot be reached. */
  isReachable(): Promise<boolean>

  /** Writes and syncs a temporary file on the disk of the bytes. Throws if that fails. Does nothing if the store is not a disk. */
  checkWrites(): Promise<void>

  /**
   * Null if nothing is stored under the id. Throws Fault `media-unknown` if the entry, or a directory above it, is a link
   * or another entry that the store did not create (docs/interface.md B8). A server may return up to `wholeUpTo` bytes, 0 by
   * default, in memory: one read costs less than opening the file for several.
   */
  open(id: ItemId, wholeUpTo?: number): Promise<OpenBlob | null>

  /** Removes the bytes, then their variants. Does nothing if there are none. */
  remove(id: ItemId): Promise<void>

  /** How many calls of `remove` a caller that has many runs at once, so that uploads do not wait for them. */
  readonly removalsAtOnce: number

  /** As `remove`, and also what an interrupted upload of the item has left. */
  removeInterrupted(id: ItemId): Promise<void>

  /** Finishes the commits in progress. No more commits and no variants are possible. */
  close(): Promise<void>
}

/** A resumable upload whose bytes are stored. `length` is null while it is unknown. */
export interface PartialUpload {
  readonly id: UploadId
  /** The id that the item will have. */
  readonly itemId: ItemId
  readonly length: number | null
}

/** Bytes to append to a partial upload. */
export interface PartialChunk {
  readonly offset: number
  readonly source: AsyncIterable<Uint8Array>
  /** Bytes that may follow the offset. */
  readonly limit: number
  /** If the source fails, none of its bytes count. */
  readonly isAtomic: boolean
  /** When the upload expires, asked when its bytes have arrived. Milliseconds since 1970. */
  readonly expiresAt: () => number
}

/** The result of appending to a partial upload. */
export interface Appended {
  /** Bytes that are stored now, all of them synced. */
  readonly size: number
  /** Why the rest of the source is missing: the source's error, or Fault `storage-full`. Null if nothing is missing. */
  readonly failure: unknown
  /** The store has recorded the size as the upload's offset. False: the caller records it, or finishes a complete upload. */
  readonly isRecorded: boolean
}

/** What a remote store holds of a partial upload, as the catalog records it. Bytes that are too few for a part are pieces in the catalog. */
export interface RecordedParts {
  /** The store's id of the multipart upload; null before the first part. */
  readonly multipart: string | null
  /** In the order of their bytes. */
  readonly parts: readonly { readonly number: number; readonly size: number; readonly etag: string }[]
}

/** The records of the parts of partial uploads in the catalog. */
export interface PartLog {
  /** Null if there is no such unfinished upload. */
  read(id: UploadId): Promise<RecordedParts | null>
  /** The pieces, in their order. */
  pieces(id: UploadId): Promise<Uint8Array[]>
  /** Records the multipart upload, unless one is recorded. Returns the recorded one; null if there is no such unfinished upload. */
  begin(id: UploadId, multipart: string): Promise<string | null>
  /**
   * Sets the offset from `from` to `to`. Adds the parts after the recorded ones, which also contain the bytes of the recorded pieces, and
   * the piece after them. All in one transaction; false, without a change, if the offset is not `from`. Throws Fault `quota-exceeded`.
   */
  store(
    id: UploadId,
    added: { readonly parts: RecordedParts['parts']; readonly piece: Uint8Array },
    move: { readonly from: number; readonly to: number; readonly expiresAt: number },
  ): Promise<boolean>
}

/** Bytes of a partial upload are missing, or fsync failed. The store has removed it, and the upload must start again. */
export class PartialUploadLost extends Error {
  override readonly name = 'PartialUploadLost'
}

/** The received bytes of resumable uploads, each under the id of its upload. */
export interface PartialUploadStore {
  /**
   * Truncates to `offset`, then appends the source. Syncs what has arrived, also if the source fails. One call at a time
   * for each id in this process. Throws Fault `file-too-large` above `limit` bytes, and then none of the source counts;
   * throws Fault `upload-offset-conflict` and PartialUploadLost.
   */
  append(upload: PartialUpload, chunk: PartialChunk): Promise<Appended>

  /** Turns a complete upload of `size` bytes into a received blob of the item `itemId`. Throws PartialUploadLost. */
  complete(id: UploadId, size: number, itemId: ItemId): Promise<ReceivedBlob>

  /** The bytes of a complete upload of `size` bytes. Throws PartialUploadLost. */
  read(id: UploadId, size: number): Promise<Uint8Array<ArrayBuffer>>

  /** Reverts the commit of an upload under `itemId`. Does nothing if there was none. */
  reclaim(id: UploadId, itemId: ItemId): Promise<void>

  /** Does nothing if there is none. */
  remove(id: UploadId): Promise<void>
}

/** Bytes that the signatures of the type sniffer need. Each large upload in progress holds this much in memory. */
export const headLength = 4_100

/** An entry in the store's directories. `size` is in bytes; `path` is relative to the data directory. */
export type BlobEntry = { readonly path: string } & (
  | { readonly kind: 'stored'; readonly id: ItemId; readonly size: number }
  /** A variant of the item with this id. */
  | { readonly kind: 'variant'; readonly id: ItemId; readonly size: number }
  /** A file that is being received, or that a killed process left. */
  | { readonly kind: 'temporary'; readonly size: number }
  /** The received part of a resumable upload. */
  | { readonly kind: 'partial'; readonly id: UploadId; readonly size: number }
  /** Not created by the store. */
  | { readonly kind: 'foreign' }
  /** A directory that this user cannot read. It may contain the bytes of items. */
  | { readonly kind: 'unreadable' }
)

/** What fsck needs of the store. All of it works while a server is running. */
export interface BlobInspection {
  entries(): AsyncIterable<BlobEntry>

  /** False if the entry was removed in the meantime. */
  exists(entry: BlobEntry): Promise<boolean>

  /**
   * Moves an entry to `lost+found/`, under a name with its kind and its id. Throws EntryUnmovable. Returns the new path; null if the entry was
   * removed in the meantime. Never replaces a file.
   */
  quarantine(entry: BlobEntry): Promise<string | null>

  /** Writes bytes of the catalog to `lost+found/`, under a new name that starts with `name`. Returns its path. */
  setAside(name: string, bytes: Uint8Array): Promise<string>
}

/** Hashes that are cached. Others are computed from the stored bytes. */
const cacheSize = 1_000

/** Caches the SHA-256 states of partial uploads, so that the bytes need not be read again when an upload completes. */
export class PartialUploadHashes {
  readonly #cache = new Map<UploadId, { readonly size: number; readonly hash: Hash }>()

  /** Removes the state from the cache; the caller owns it. Null if the hash of the bytes before `offset` is unknown. */
  take(id: UploadId, offset: number): Hash | null {
    const state = this.#cache.get(id)
    this.#cache.delete(id)
    if (state?.size === offset) return state.hash
    return offset === 0 ? createHash('sha256') : null
  }

  store(id: UploadId, size: number, hash: Hash): void {
    this.#cache.set(id, { size, hash })
    const [oldest] = this.#cache.keys()
    if (this.#cache.size > cacheSize && oldest !== undefined) this.#cache.delete(oldest)
  }

  forget(id: UploadId): void {
    this.#cache.delete(id)
  }

  /** The SHA-256 of the whole upload. `compute` reads the stored bytes; it is called if the state is not cached. */
  async digest(id: UploadId, size: number, compute: () => Promise<Uint8Array>): Promise<Uint8Array> {
    const state = this.#cache.get(id)
    this.#cache.delete(id)
    return state?.size === size ? state.hash.digest() : compute()
  }
}
