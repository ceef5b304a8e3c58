import type { Readable } from 'node:stream'
import { ExplainedError } from '../core/explained-error.ts'
import type { ItemId } from '../core/media-id.ts'
import type { UploadId } from '../core/upload-id.ts'
import type { VariantKey } from '../core/variant.ts'
import type { PartialUploadStore } from './partial-uploads.ts'
import type { ReceivedBlob } from './received-blob.ts'

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
  | { readonly type: 'bytes'; readonly bytes: Uint8Array }
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
   * uploads. Returns the sizes of those that are shorter than their offset.
   */
  matchUploads(
    uploads: readonly { readonly id: UploadId; readonly itemId: ItemId; readonly offset: number }[],
  ): Promise<Map<UploadId, number>>
}

/** The ids under which a store is about to store bytes, as the catalog records them, so that bytes without an item are found. */
export interface IntentLog {
  /** Durable when it resolves. Extends the deadlines of recorded ids. */
  record(ids: readonly ItemId[]): Promise<void>
  clear(ids: readonly ItemId[]): Promise<void>
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
}

/** Stores the bytes of items. When the promise of a change resolves, the change survives a power failure. */
export interface BlobStore {
  readonly partialUploads: PartialUploadStore
  readonly variants: VariantStore
  /** Null if the store needs no recovery, because its processes share no files. */
  readonly recovery: BlobRecovery | null

  /**
   * Reads the bytes of the item `id` from the source to its end, hashes and counts them. Throws Fault `file-too-large` above
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

  /** As `remove`, and also what an interrupted upload of the item has left. */
  removeInterrupted(id: ItemId): Promise<void>

  /** Finishes the commits in progress. No more commits and no variants are possible. */
  close(): Promise<void>
}
