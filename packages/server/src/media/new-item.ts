import type { BlobStore, ReceivedBlob } from '../blobs/blobs.ts'
import type { NewMedia } from '../catalog/catalog.ts'
import { cleanFilename } from '../core/filename.ts'
import { keptType } from '../core/kept-type.ts'
import type { MediaId } from '../core/media-id.ts'
import type { MeasurePicture } from './measure-picture.ts'
import { sniffType } from './sniff.ts'

/** The item that received bytes become: the one place that says how name, type and size are kept (docs/interface.md U7, U8). */
export async function newItem(
  parts: { readonly blobs: Pick<BlobStore, 'peek'>; readonly measurePicture: MeasurePicture },
  blob: ReceivedBlob,
  given: {
    readonly id: MediaId
    /** As the client sent them. */
    readonly filename: string | null
    readonly declaredType: string | null
    readonly createdAt: number
  },
): Promise<NewMedia> {
  const filename = cleanFilename(given.filename)
  const sniffed = await sniffType(parts.blobs, blob)
  const kept = keptType({ sniffed, declared: given.declaredType, filename })
  const displayed = await parts.measurePicture(blob, kept.contentType)
  return {
    id: given.id,
    filename,
    ...kept,
    size: blob.size,
    sha256: blob.sha256,
    width: displayed?.width ?? null,
    height: displayed?.height ?? null,
    createdAt: given.createdAt,
  }
}
