import type { BlobStore, ReceivedBlob } from '../../blobs/blobs.ts'
import { isPictured } from '../../core/variant.ts'
import type { PictureSize } from './picture-task.ts'
import type { PictureWorkers } from './picture-workers.ts'

/** The displayed width and height of a received picture; null if unknown. Never throws. */
export type MeasurePicture = (blob: ReceivedBlob, contentType: string) => Promise<PictureSize | null>

/** Reads only the header of the picture, in a worker. */
export function measurePictureOperation(parts: {
  readonly blobs: Pick<BlobStore, 'contentOf'>
  readonly workers: Pick<PictureWorkers, 'run'>
}): MeasurePicture {
  return async (blob, contentType) => {
    if (!isPictured(contentType)) return null
    try {
      const result = await parts.workers.run({ type: 'measure', picture: parts.blobs.contentOf(blob) })
      return result.outcome === 'measured' ? result.size : null
    } catch {
      // An upload succeeds without its dimensions.
      return null
    }
  }
}
