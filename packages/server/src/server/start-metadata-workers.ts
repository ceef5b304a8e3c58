import { createPictureWorkers } from '../media/pictures/picture-workers.ts'
import { type RemoveMetadata, removeMetadataOperation } from '../media/pictures/remove-metadata.ts'
import type { OpenData } from './open-data.ts'
import type { StartContext } from './start-context.ts'

/**
 * Metadata workers read the structure of a file: the tables of a video, all bytes of a JPEG picture. The file may be in a remote store. The
 * upload waits for the result, so the two workers have normal priority. Durations are milliseconds, memory is bytes.
 */
const limits = {
  workers: 2,
  queue: 1_000,
  queueTimeout: 60_000,
  timeout: 60_000,
  memory: 600_000_000,
  niceness: 0,
}

/** Starts the processes that find the metadata of uploaded files. */
export function startMetadataWorkers(
  { closers }: StartContext,
  { blobs }: Pick<OpenData, 'blobs'>,
): RemoveMetadata {
  const workers = createPictureWorkers(limits)
  closers.add('the metadata workers', () => workers.close())
  return removeMetadataOperation({ blobs, workers, now: Date.now })
}
