import type { InstalledTools } from '../media/pictures/find-tools.ts'
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

/** Comparison workers decode all pixels of a picture twice, and read all bytes of a video twice. */
const comparisonLimits = { ...limits, timeout: 120_000, startPrograms: true }

/** Starts the processes that find the metadata of uploaded files, and those that compare the files before and after its removal. */
export function startMetadataWorkers(
  { closers }: StartContext,
  { blobs, tools }: Pick<OpenData, 'blobs'> & { readonly tools: InstalledTools },
): RemoveMetadata {
  const workers = createPictureWorkers(limits)
  const comparisonWorkers = createPictureWorkers(comparisonLimits)
  closers.add('the metadata workers', () => {
    workers.close()
    comparisonWorkers.close()
  })
  return removeMetadataOperation({ blobs, workers, comparisonWorkers, tools, now: Date.now })
}
