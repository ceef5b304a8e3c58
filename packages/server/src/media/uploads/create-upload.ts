import type { BucketId, Catalog, NewUpload } from '../../catalog/catalog.ts'
import { Fault } from '../../core/fault.ts'
import { newMediaId } from '../../core/media-id.ts'

/** What the client tells of a file that it will send in pieces. */
type UploadRequest = Pick<NewUpload, 'id' | 'length' | 'metadata' | 'filename' | 'declaredType'>

export type CreateUpload = (bucketId: BucketId, request: UploadRequest) => Promise<NewUpload>

/** Begins an upload in pieces, and reserves room for it. Throws Fault `file-too-large` and `quota-exceeded`. */
export function createCreateUpload(parts: {
  readonly catalog: Pick<Catalog, 'createUpload'>
  /** Bytes. */
  readonly maxFileSize: number
  /** Milliseconds. */
  readonly expiry: number
  readonly now: () => number
}): CreateUpload {
  const { catalog, maxFileSize, expiry, now } = parts
  return async (bucketId, request) => {
    if (request.length !== null && request.length > maxFileSize)
      throw new Fault('file-too-large', `A file may have at most ${maxFileSize} bytes.`)
    const upload = {
      ...request,
      bucketId,
      mediaId: newMediaId(),
      expiresAt: now() + expiry,
    }
    await catalog.createUpload(upload)
    return upload
  }
}
