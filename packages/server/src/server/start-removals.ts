import { startSweeper } from '../core/run-periodically.ts'
import { createRemoveMedia, type RemoveMedia } from '../media/remove-media.ts'
import type { OpenData } from './open-data.ts'
import type { StartContext } from './start-context.ts'

/** Milliseconds between checks whether a backup that delayed removals has ended. */
const heldRemovalInterval = 1_000

/** Creates the operation that deletes items, and retries the removals that a backup delayed. */
export function startRemovals(
  { log, closers }: StartContext,
  { erasing, retryHeldRemovals }: Pick<OpenData, 'erasing' | 'retryHeldRemovals'>,
): RemoveMedia['remove'] {
  const { remove, settled } = createRemoveMedia(erasing)
  closers.add('the removal of bytes', settled)
  const retries = startSweeper({
    work: retryHeldRemovals,
    interval: heldRemovalInterval,
    onFailure: (err) => log.warn({ err }, 'bytes whose removal a backup delayed stay until the next retry'),
  })
  closers.add('the removal retry', () => retries.stop())
  return remove
}
