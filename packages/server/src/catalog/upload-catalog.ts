import type { Actor } from '../core/actor.ts'
import type { UploadId } from '../core/upload-id.ts'
import type { BucketId, NewMediaContent } from './records.ts'
import type { NewUpload, OffsetMove, StoredParts, Upload, UploadParts } from './upload-records.ts'

/** The resumable uploads of the catalog. */
export interface UploadCatalog {
  /** Creates an upload, and reserves one item and its length if known. Throws Fault `quota-exceeded`. */
  createUpload(upload: NewUpload): Promise<void>

  upload(id: UploadId): Promise<Upload | null>

  /** Sets and reserves the length if it was unknown; false if there is no such upload. Throws Fault `quota-exceeded`. */
  declareLength(id: UploadId, length: number): Promise<boolean>

  /** Sets an unfinished upload's offset if it was `from`, else returns false. Throws Fault `quota-exceeded`. */
  moveUpload(id: UploadId, from: number, to: number, expiresAt: number): Promise<boolean>

  /** What a remote blob store holds of an upload; null if there is no such unfinished upload. */
  uploadParts(id: UploadId): Promise<UploadParts | null>

  /** The bytes of the upload that are in the catalog, in order. They follow the bytes of its parts. */
  uploadPieces(id: UploadId): Promise<Uint8Array[]>

  /** Records the id of the multipart upload, unless one is recorded. Returns the recorded one; null as uploadParts. */
  beginParts(id: UploadId, multipart: string): Promise<string | null>

  /** As moveUpload; in the same transaction adds the parts and the piece. If there are parts, removes the pieces before them. */
  storeParts(id: UploadId, stored: StoredParts, move: OffsetMove): Promise<boolean>

  /**
   * Adds the item, and its bytes if given, and marks the upload as finished in one transaction; false if no unfinished upload
   * has this id and the length `received`, by default the item's size. Throws Fault `quota-exceeded`.
   */
  finishUpload(
    id: UploadId,
    added: NewMediaContent,
    expiresAt: number,
    by?: Actor,
    received?: number,
  ): Promise<boolean>

  /**
   * Removes the upload and releases its reservation; its item, if it has one, stays. With `onlyUnfinished`, keeps a finished
   * upload. False if there is no such upload.
   */
  removeUpload(id: UploadId, onlyUnfinished?: boolean): Promise<boolean>

  unfinishedUploads(): Promise<Upload[]>

  /** Uploads, finished or not, that expired at `now` or before. */
  expiredUploads(now: number): Promise<Upload[]>

  /** Uploads of the bucket, finished or not. */
  uploadsOf(bucketId: BucketId): Promise<Upload[]>
}
