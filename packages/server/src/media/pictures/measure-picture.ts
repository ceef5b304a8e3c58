import type { BlobStore } from '../../blobs/blobs.ts'
import type { BucketId } from '../../catalog/records.ts'
import { isDecoded } from '../../core/variant.ts'
import type { ReceivedFile } from '../receive-files.ts'
import { type PictureSize, type PictureSource, sourceOf } from './picture-task.ts'
import type { PictureWorkers } from './picture-workers.ts'

/** The displayed width and height of a received picture; null if unknown, at once if it is no picture. Never throws. */
export type MeasurePicture = (
  file: ReceivedFile,
  contentType: string,
  bucketId: BucketId,
) => Promise<PictureSize | null> | null

/** Bytes from the start of a picture that usually have its header. */
const headerLength = 262_144

/** Reads only the header of the picture, in a worker. */
export function measurePictureOperation(parts: {
  readonly blobs: Pick<BlobStore, 'share'>
  readonly workers: Pick<PictureWorkers, 'run'>
}): MeasurePicture {
  async function measure(picture: PictureSource, bucketId: BucketId): Promise<PictureSize | null> {
    const result = await parts.workers.run({ type: 'measure', picture }, `${bucketId}`)
    return result.outcome === 'measured' ? result.size : null
  }

  async function measureFile(file: ReceivedFile, bucketId: BucketId): Promise<PictureSize | null> {
    try {
      if ('bytes' in file) return await measure(file.bytes, bucketId)
      for (const length of [headerLength, Number.POSITIVE_INFINITY]) {
        const picture = await parts.blobs.share(file, length)
        try {
          const size = await measure(sourceOf(picture), bucketId)
          if (size !== null || picture.isWhole) return size
        } finally {
          await picture.release()
        }
      }
      return null
    } catch {
      // An upload succeeds without its dimensions.
      return null
    }
  }

  return (file, contentType, bucketId) => (isDecoded(contentType) ? measureFile(file, bucketId) : null)
}
