import type { Readable } from 'node:stream'
import type { MediaId } from '../core/media-id.ts'
import type { UploadId } from '../core/upload-id.ts'
import type { Variant } from '../core/variant.ts'

/** Bytes in a file of the store, received completely and not committed under an id. A crash may lose them. */
export interface ReceivedBlob {
  /** Identifies the bytes inside their store; meaningless outside it. */
  readonly handle: string
  /** Bytes. */
  readonly size: number
  /** 32 bytes. */
  readonly sha256: Uint8Array
  /** The first bytes, for sniffing the type: at least `headLength`, or the whole blob. */
  readonly head: Uint8Array
}

/** Bytes that the signatures of the type sniffer need. Each large upload in progress holds this much in memory. */
export const headLength = 4_100

/** A blob opened for reading. Call either `stream` once, or `close` at the end. */
export interface OpenBlob {
  /** Bytes. */
  readonly size: number
  /** The path of a file that other processes of this machine can read, or the bytes. */
  readonly content: string | Uint8Array
  /** Fills `into` with the bytes from `position` on. One call at a time. Throws BlobTruncatedError. */
  read(into: Uint8Array, position: number): Promise<void>
  /** Bytes `start` to `end`, both inclusive. Closes the blob when it ends or is destroyed. */
  stream(start: number, end: number): Readable
  /** Waits for a read in progress. Can be called twice. */
  close(): Promise<void>
}

/** The result of appending to a partial upload. */
interface Appended {
  /** Bytes that are stored now, all of them synced. */
  readonly size: number
  /** Why the rest of the source is missing: the source's error, or Fault `storage-full`. Null if nothing is missing. */
  readonly failure: unknown
}

/** The directory of the blobs does not belong to the catalog. The message is one line and says what to do. */
export class BlobsMismatchError extends Error {
  override readonly name = 'BlobsMismatchError'
}

/** The bytes of a blob end before its size: its file was truncated after it was opened. */
export class BlobTruncatedError extends Error {
  override readonly name = 'BlobTruncatedError'
}

/** Bytes of a partial upload are missing, or fsync failed. The store has removed it, and the upload must start again. */
export class PartialUploadLost extends Error {
  override readonly name = 'PartialUploadLost'
}

/** The received bytes of resumable uploads, each under the id of its upload. */
export interface PartialUploadStore {
  /**
   * Truncates to `offset`, then appends the source. Syncs what has arrived, also if the source fails. One call at a time
   * for each id. Throws Fault `file-too-large` above `limit` bytes, and then none of the source counts; throws
   * PartialUploadLost.
   */
  append(
    id: UploadId,
    chunk: { offset: number; source: AsyncIterable<Uint8Array>; limit: number },
  ): Promise<Appended>

  /** Turns a complete upload of `size` bytes into a received blob. Throws PartialUploadLost. */
  complete(id: UploadId, size: number): Promise<ReceivedBlob>

  /** The bytes of a complete upload of `size` bytes. Throws PartialUploadLost. */
  read(id: UploadId, size: number): Promise<Uint8Array<ArrayBuffer>>

  /** Reverts the commit of an upload under `mediaId`. Does nothing if there was none. */
  reclaim(id: UploadId, mediaId: MediaId): Promise<void>

  /** Does nothing if there is none. */
  remove(id: UploadId): Promise<void>

  /**
   * Makes the stored bytes match these uploads: reverts commits, truncates to the offsets, removes all other partial
   * uploads. Returns the sizes of those that are shorter than their offset. Only while no other process writes.
   */
  recover(
    uploads: readonly { readonly id: UploadId; readonly mediaId: MediaId; readonly offset: number }[],
  ): Promise<Map<UploadId, number>>
}

/** Variants of pictures. They can be rendered again, so losing one is harmless. */
export interface VariantStore {
  /**
   * Replaces an existing variant atomically. After a crash, the variant is complete or missing; after a power failure, all
   * variants may be missing.
   */
  store(id: MediaId, variant: Variant, bytes: Uint8Array): Promise<void>

  /** As `BlobStore.open`. With `pictureSize`, also null unless a blob of this size is stored under the id. */
  open(
    id: MediaId,
    variant: Variant,
    options?: { readonly pictureSize?: number; readonly wholeUpTo?: number },
  ): Promise<Pick<OpenBlob, 'size' | 'content' | 'read' | 'close'> | null>

  /** Removes all variants of the item, as `BlobStore.remove` does. */
  remove(id: MediaId): Promise<void>
}

/** Stores the bytes of items. When the promise of a change resolves, the change survives a power failure. */
export interface BlobStore {
  readonly partialUploads: PartialUploadStore
  readonly variants: VariantStore

  /**
   * Reads the source to its end, hashes it and counts its bytes. Throws Fault `file-too-large` above `limit` bytes and
   * `storage-full`; leaves nothing behind when it throws.
   */
  receive(source: AsyncIterable<Uint8Array>, limit: number): Promise<ReceivedBlob>

  /** The received bytes with random access, for sniffing inside containers. */
  peek(blob: ReceivedBlob): Promise<Blob>

  /** The received bytes as a file that other processes of this machine can read. */
  pathOf(blob: ReceivedBlob): string

  /** Stores received bytes under a new id. The caller has recorded the id, so that a start after a crash finds the bytes. */
  commit(blob: ReceivedBlob, id: MediaId): Promise<void>

  /** False while the directory of the blobs is not the one that belongs to the catalog. */
  isReachable(): boolean

  /** Ids that an earlier version recorded before it committed bytes under them, and ids stored in the same directories. */
  earlierIntents(): Promise<MediaId[]>

  /** Call it when each earlier intent has a row or no bytes. */
  clearEarlierIntents(): Promise<void>

  /** Removes received bytes that are not committed. */
  discard(blob: ReceivedBlob): Promise<void>

  /**
   * Null if nothing is stored under the id. Throws Fault `media-unknown` if the entry, or a directory above it, is a link
   * or another entry that the store did not create (docs/interface.md B8). A server may return up to `wholeUpTo` bytes, 0 by
   * default, in memory: one read costs less than opening the file for several.
   */
  open(id: MediaId, wholeUpTo?: number): Promise<OpenBlob | null>

  /** Removes the bytes, then their variants. Does nothing if there are none. */
  remove(id: MediaId): Promise<void>

  /** Removes temporary files of earlier processes. Returns how many. Only while no other process writes. */
  recover(): Promise<number>

  /** Finishes the commits in progress. No more commits and no variants are possible. */
  close(): Promise<void>
}
