import type { BlobStore, ReceivedBlob } from '../blobs/blobs.ts'
import type { NewMedia } from '../catalog/catalog.ts'
import { cleanFilename } from '../core/filename.ts'
import { keptType } from '../core/kept-type.ts'
import type { MediaId } from '../core/media-id.ts'
import { sniffType } from './sniff.ts'

/** The item that received bytes become: the one place that says how name and type are kept (docs/interface.md U7, U8). */
export async function newItem(
  blobs: Pick<BlobStore, 'peek'>,
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
  const sniffed = await sniffType(blobs, blob)
  return {
    id: given.id,
    filename,
    ...keptType({ sniffed, declared: given.declaredType, filename }),
    size: blob.size,
    sha256: blob.sha256,
    width: null,
    height: null,
    createdAt: given.createdAt,
  }
}
