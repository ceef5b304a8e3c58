import { startPeriodicTask } from '../core/periodic-task.ts'
import { createItemRemover, type ItemRemover } from '../media/deletion/remove-media.ts'
import type { OpenData } from './open-data.ts'
import type { StartContext } from './start-context.ts'

/** Milliseconds between checks whether a backup that delayed removals has ended. */
const retryInterval = 1_000

/** Creates the operations that delete items, and retries the removals that a backup delayed. */
export function startRemovals(
  { log, closers }: StartContext,
  { blobDeletion, retryDeferredDeletions }: Pick<OpenData, 'blobDeletion' | 'retryDeferredDeletions'>,
): ItemRemover {
  const remover = createItemRemover(blobDeletion)
  closers.add('the removal of bytes', remover.settled)
  const retries = startPeriodicTask({
    work: retryDeferredDeletions,
    interval: retryInterval,
    onFailure: (err) => log.warn({ err }, 'bytes whose removal a backup delayed stay until the next retry'),
  })
  closers.add('the removal retry', () => retries.stop())
  return remover
}
