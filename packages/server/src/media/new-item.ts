import type { BlobStore, ReceivedBlob } from '../blobs/blobs.ts'
import type { NewMedia } from '../catalog/catalog.ts'
import { cleanFilename } from '../core/filename.ts'
import type { MediaId } from '../core/media-id.ts'
import { storedType } from '../core/stored-type.ts'
import type { MeasurePicture } from './pictures/measure-picture.ts'
import { sniffType } from './sniff-type.ts'

/** Builds the item of received bytes: its name, type and dimensions (docs/interface.md U7, U8). */
export async function newItem(
  parts: { readonly blobs: Pick<BlobStore, 'peek'>; readonly measurePicture: MeasurePicture },
  blob: ReceivedBlob,
  given: {
    readonly id: MediaId
    /** As sent by the client. */
    readonly filename: string | null
    readonly declaredType: string | null
    readonly createdAt: number
  },
): Promise<NewMedia> {
  const filename = cleanFilename(given.filename)
  const sniffed = await sniffType(parts.blobs, blob)
  const type = storedType({ sniffed, declared: given.declaredType, filename })
  const displayed = await parts.measurePicture(blob, type.contentType)
  return {
    id: given.id,
    filename,
    ...type,
    size: blob.size,
    sha256: blob.sha256,
    width: displayed?.width ?? null,
    height: displayed?.height ?? null,
    createdAt: given.createdAt,
  }
}
