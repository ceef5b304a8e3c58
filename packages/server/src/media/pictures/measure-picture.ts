import type { BlobStore } from '../../blobs/blobs.ts'
import { isPictured } from '../../core/variant.ts'
import type { ReceivedFile } from '../receive-files.ts'
import type { PictureSize } from './picture-task.ts'
import type { PictureWorkers } from './picture-workers.ts'

/** The displayed width and height of a received picture; null if unknown. Never throws. */
export type MeasurePicture = (file: ReceivedFile, contentType: string) => Promise<PictureSize | null>

/** Reads only the header of the picture, in a worker. */
export function measurePictureOperation(parts: {
  readonly blobs: Pick<BlobStore, 'pathOf'>
  readonly workers: Pick<PictureWorkers, 'run'>
}): MeasurePicture {
  return async (file, contentType) => {
    if (!isPictured(contentType)) return null
    try {
      const picture = 'bytes' in file ? file.bytes : parts.blobs.pathOf(file)
      const result = await parts.workers.run({ type: 'measure', picture })
      return result.outcome === 'measured' ? result.size : null
    } catch {
      // An upload succeeds without its dimensions.
      return null
    }
  }
}
