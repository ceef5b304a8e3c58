import type { BlobStore } from '../../blobs/blobs.ts'
import type { BucketId, Catalog, Upload } from '../../catalog/catalog.ts'
import { Fault } from '../../core/fault.ts'
import type { UploadId } from '../../core/upload-id.ts'
import { uploadUnknown } from './find-upload.ts'
import type { UploadTurns } from './upload-turns.ts'

export interface RemoveUploadParts {
  readonly catalog: Pick<Catalog, 'upload' | 'removeUpload'>
  readonly blobs: Pick<BlobStore, 'partialUploads'>
  readonly turns: UploadTurns
}

interface ItemRemoval {
  readonly removeMedia: (bucketId: BucketId, id: string) => Promise<void>
}

/**
 * `permitItem` throws unless the caller may remove items: it is called when the upload has become one, which is removed
 * too. Returns whether an item was removed.
 */
export type RemoveUpload = (id: UploadId, permitItem: () => void) => Promise<{ item: boolean }>

/** Ends an upload: what has arrived goes, and so does the item if it was finished (docs/interface.md R9). */
export function createRemoveUpload(parts: RemoveUploadParts & ItemRemoval): RemoveUpload {
  return (id, permitItem) =>
    parts.turns.take(id, async () => {
      const upload = await parts.catalog.upload(id)
      if (upload === null) throw uploadUnknown()
      if (upload.finished) permitItem()
      const item = upload.finished && (await removeItem(parts, upload))
      await dropUpload(parts, upload)
      return { item }
    })
}

/** Drops what is known of an upload and, unless it has become an item, its bytes; in the upload's own turn. */
export async function dropUpload(
  { catalog, blobs }: Omit<RemoveUploadParts, 'turns'>,
  upload: Upload,
): Promise<void> {
  // Before the row goes, which alone knows where an attempt to finish has left the bytes.
  if (!upload.finished) await blobs.partialUploads.reclaim(upload.id, upload.mediaId)
  await catalog.removeUpload(upload.id)
  await blobs.partialUploads.remove(upload.id)
}

/** False where the item was deleted before. */
async function removeItem({ removeMedia }: ItemRemoval, { bucketId, mediaId }: Upload): Promise<boolean> {
  try {
    await removeMedia(bucketId, mediaId)
    return true
  } catch (error) {
    if (error instanceof Fault && error.code === 'media-unknown') return false
    throw error
  }
}
