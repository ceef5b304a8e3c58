import { type MeasurePicture, measurePictureOperation } from '../media/pictures/measure-picture.ts'
import { createPictureWorkers } from '../media/pictures/picture-workers.ts'
import type { OpenData } from './open-data.ts'
import type { StartContext } from './start-context.ts'

/**
 * Dimension workers read only the header of a picture. The upload waits for the result, so the two workers have normal priority. Durations
 * are milliseconds, memory is bytes.
 */
const limits = {
  workers: 2,
  queue: 1_000,
  queueTimeout: 5_000,
  timeout: 2_000,
  memory: 400_000_000,
  niceness: 0,
}

/** Starts the processes that read the width and height of uploaded pictures. */
export function startDimensionWorkers(
  { closers }: StartContext,
  { blobs }: Pick<OpenData, 'blobs'>,
): MeasurePicture {
  const workers = createPictureWorkers(limits)
  closers.add('the dimension workers', () => workers.close())
  return measurePictureOperation({ blobs, workers })
}
