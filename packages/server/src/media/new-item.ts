import type { BlobStore } from '../blobs/blobs.ts'
import type { NewMedia } from '../catalog/records.ts'
import { cleanFilename } from '../core/filename.ts'
import type { MediaId } from '../core/media-id.ts'
import { storedType } from '../core/stored-type.ts'
import type { MeasurePicture } from './pictures/measure-picture.ts'
import type { ReceivedFile } from './receive-files.ts'
import { sniffType } from './sniff-type.ts'

/** Builds the item of a received file: its name, type and dimensions (docs/interface.md U7, U8). */
export async function newItem(
  parts: { readonly blobs: Pick<BlobStore, 'peek'>; readonly measurePicture: MeasurePicture },
  file: ReceivedFile,
  given: {
    readonly id: MediaId
    /** As sent by the client. */
    readonly filename: string | null
    readonly declaredType: string | null
    readonly createdAt: number
  },
): Promise<NewMedia> {
  const filename = cleanFilename(given.filename)
  const sniffed = await sniffType(parts.blobs, file)
  const type = storedType({ sniffed, declared: given.declaredType, filename })
  const dimensions = await parts.measurePicture(file, type.contentType)
  return {
    id: given.id,
    filename,
    ...type,
    size: file.size,
    sha256: file.sha256,
    width: dimensions?.width ?? null,
    height: dimensions?.height ?? null,
    createdAt: given.createdAt,
  }
}
