import type { ItemId } from '../core/media-id.ts'
import type { UploadId } from '../core/upload-id.ts'
import type { ReceivedBlob } from './received-blob.ts'

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
  /** When the upload expires if bytes are stored now. Milliseconds since 1970. */
  readonly expiresAt: number
}

/** The result of appending to a partial upload. */
interface Appended {
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
