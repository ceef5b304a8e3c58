import { startPeriodicTask } from '../core/periodic-task.ts'
import { deleteBlobs } from '../media/deletion/delete-blobs.ts'
import { createIntentSweep, intentSweepInterval } from '../media/deletion/sweep-intents.ts'
import type { OpenData } from './open-data.ts'
import type { StartContext } from './start-context.ts'

/** Items whose bytes are deleted before the sweep checks whether the service stops. */
const batchLength = 100

/**
 * Removes the blobs of uploads that were interrupted, and those of deleted items whose removal has failed: periodically, and
 * at the start, in the background.
 */
export function startIntentSweep(
  { log, closers }: StartContext,
  { blobDeletion }: Pick<OpenData, 'blobDeletion'>,
): void {
  const sweep = createIntentSweep(blobDeletion)
  let isStopping = false
  async function work(): Promise<void> {
    const removed = await sweep()
    if (removed > 0) log.info({ removed }, 'removed the bytes of interrupted uploads')
    const tombstones = await blobDeletion.catalog.tombstones()
    for (let done = 0; !isStopping && done < tombstones.length; done += batchLength)
      await deleteBlobs(blobDeletion, tombstones.slice(done, done + batchLength))
  }
  const onFailure = (err: unknown) =>
    log.warn({ err }, 'the bytes of interrupted uploads and deleted items stay until the next sweep')
  const first = work().catch(onFailure)
  const sweeps = startPeriodicTask({ work, interval: intentSweepInterval, onFailure })
  closers.add('the sweep of interrupted uploads', () => {
    isStopping = true
    return Promise.all([first, sweeps.stop()])
  })
}
