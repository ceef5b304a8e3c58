import type { BlobStore } from '../../blobs/blobs.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { BucketId } from '../../catalog/records.ts'
import type { Upload } from '../../catalog/uploads.ts'
import type { Actor } from '../../core/actor.ts'
import { Fault } from '../../core/fault.ts'
import { isItemId } from '../../core/media-id.ts'
import { isUploadId, type UploadId } from '../../core/upload-id.ts'
import { uploadUnknown } from './find-upload.ts'
import type { UploadLocks } from './upload-locks.ts'

export interface RemoveUploadParts {
  readonly catalog: Pick<Catalog, 'upload' | 'removeUpload'>
  readonly blobs: Pick<BlobStore, 'partialUploads'>
  readonly locks: Pick<UploadLocks, 'hold'>
}

interface ItemRemoval {
  readonly removeItem: (bucketId: BucketId, id: string, by: Actor) => Promise<void>
}

export type RemoveUpload = ReturnType<typeof removeUploadOperation>

/** Removes an upload with its bytes, and its item if it has become one (docs/interface.md R9). Throws Fault `upload-unknown`. */
export function removeUploadOperation(parts: RemoveUploadParts & ItemRemoval) {
  /**
   * `permitItemRemoval` throws unless the caller may remove items; it is called only for a finished upload. Returns whether
   * an item was removed.
   */
  return function removeUpload(
    id: UploadId,
    permitItemRemoval: () => void,
    by: Actor,
  ): Promise<{ item: boolean }> {
    return parts.locks.hold(id, async () => {
      const upload = await parts.catalog.upload(id)
      if (upload === null) throw uploadUnknown()
      if (upload.finished) permitItemRemoval()
      const item = upload.finished && (await removeItemOf(parts, upload, by))
      await dropUpload(parts, upload)
      return { item }
    })
  }
}

/** Removes the row and, unless it has become an item, the bytes. The caller holds the lock. */
export async function dropUpload(
  { catalog, blobs }: Omit<RemoveUploadParts, 'locks'>,
  upload: Upload,
): Promise<void> {
  // A row that the service did not write has no bytes.
  const hasBytes = isUploadId(upload.id) && isItemId(upload.itemId)
  // Before the row is removed, because only the row contains the name under which a failed attempt to finish left the bytes.
  if (hasBytes && !upload.finished) await blobs.partialUploads.reclaim(upload.id, upload.itemId)
  await catalog.removeUpload(upload.id)
  if (hasBytes) await blobs.partialUploads.remove(upload.id)
}

/** Returns false if the item was deleted before. */
async function removeItemOf(
  { removeItem }: ItemRemoval,
  { bucketId, itemId }: Upload,
  by: Actor,
): Promise<boolean> {
  try {
    await removeItem(bucketId, itemId, by)
    return true
  } catch (error) {
    if (error instanceof Fault && error.code === 'media-unknown') return false
    throw error
  }
}
