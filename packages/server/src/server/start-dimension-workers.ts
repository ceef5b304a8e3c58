import { createMeasurePicture, type MeasurePicture } from '../media/pictures/measure-picture.ts'
import { createPictureProcesses } from '../media/pictures/picture-processes.ts'
import type { OpenData } from './open-data.ts'
import type { StartContext } from './start-context.ts'

/**
 * Dimension workers read only the header of a picture, and its upload waits for the result: two at once, at normal
 * priority. Durations are milliseconds, memory is bytes.
 */
const limits = {
  processes: 2,
  queue: 1_000,
  patience: 5_000,
  timeout: 5_000,
  memory: 400_000_000,
  nice: 0,
}

/** Starts the processes that read the width and height of uploaded pictures. */
export function startDimensionWorkers(
  { closers }: StartContext,
  { blobs }: Pick<OpenData, 'blobs'>,
): MeasurePicture {
  const processes = createPictureProcesses(limits)
  closers.add('the dimension workers', () => processes.close())
  return createMeasurePicture({ blobs, processes })
}
