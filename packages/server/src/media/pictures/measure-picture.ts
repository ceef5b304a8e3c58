import type { BlobStore, ReceivedBlob } from '../../blobs/blobs.ts'
import { isPictured } from '../../core/variant.ts'
import type { PictureSize } from './picture-task.ts'
import type { PictureWorkers } from './picture-workers.ts'

/** The size at which received bytes of this type are displayed; null where it cannot be told. Never throws. */
export type MeasurePicture = (blob: ReceivedBlob, contentType: string) => Promise<PictureSize | null>

/** Asks for the header of the picture alone; nothing at all where the type is none that is pictured. */
export function measurePictureOperation(parts: {
  readonly blobs: Pick<BlobStore, 'contentOf'>
  readonly workers: Pick<PictureWorkers, 'run'>
}): MeasurePicture {
  return async (blob, contentType) => {
    if (!isPictured(contentType)) return null
    try {
      const answer = await parts.workers.run({ what: 'measure', picture: parts.blobs.contentOf(blob) })
      return answer.outcome === 'measured' ? answer.size : null
    } catch {
      // An upload never fails for want of these numbers.
      return null
    }
  }
}
