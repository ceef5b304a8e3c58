import type { MediaId } from '../core/media-id.ts'
import type { UploadId } from '../core/upload-id.ts'
import type { BucketId } from './records.ts'

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
  readonly mediaId: MediaId
  /** Milliseconds since 1970. */
  readonly expiresAt: number
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
export interface StoredParts {
  /** They follow the recorded parts, and contain the bytes of the recorded pieces. */
  readonly parts: readonly UploadPart[]
  /** May be empty. */
  readonly piece: Uint8Array
}

/** A change of an upload's offset. `expiresAt` is in milliseconds since 1970. */
export interface OffsetMove {
  readonly from: number
  readonly to: number
  readonly expiresAt: number
}
