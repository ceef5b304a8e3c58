import type { Catalog } from '../../catalog/catalog.ts'
import type { BucketId } from '../../catalog/records.ts'
import type { NewUpload, Upload } from '../../catalog/uploads.ts'
import { newItemId } from '../../core/media-id.ts'
import { newUploadId } from '../../core/upload-id.ts'
import { checkFileSize } from './check-chunk.ts'

/** What the client says about the file. */
type UploadRequest = Pick<NewUpload, 'length' | 'metadata' | 'filename' | 'declaredType'>

export type CreateUpload = ReturnType<typeof createUploadOperation>

/** Creates a resumable upload and reserves its length. Throws Fault `file-too-large` and `quota-exceeded`. */
export function createUploadOperation(parts: {
  readonly catalog: Pick<Catalog, 'createUpload'>
  /** Bytes. */
  readonly maxFileSize: number
  /** Milliseconds. */
  readonly expiry: number
  readonly now: () => number
}) {
  const { catalog, maxFileSize, expiry, now } = parts
  return async function createUpload(bucketId: BucketId, request: UploadRequest): Promise<Upload> {
    if (request.length !== null) checkFileSize(request.length, maxFileSize)
    const upload = {
      ...request,
      id: newUploadId(),
      bucketId,
      itemId: newItemId(),
      expiresAt: now() + expiry,
    }
    await catalog.createUpload(upload)
    return { ...upload, offset: 0, finished: false }
  }
}
