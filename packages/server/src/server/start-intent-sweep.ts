import { startPeriodicTask } from '../core/periodic-task.ts'
import { createIntentSweep, intentSweepInterval } from '../media/deletion/sweep-intents.ts'
import type { OpenData } from './open-data.ts'
import type { StartContext } from './start-context.ts'

/** Periodically removes the blobs of uploads that were interrupted before their items were added. */
export function startIntentSweep(
  { log, closers }: StartContext,
  { blobDeletion }: Pick<OpenData, 'blobDeletion'>,
): void {
  const sweep = createIntentSweep(blobDeletion)
  const sweeps = startPeriodicTask({
    async work() {
      const removed = await sweep()
      if (removed > 0) log.info({ removed }, 'removed the bytes of interrupted uploads')
    },
    interval: intentSweepInterval,
    onFailure: (err) => log.warn({ err }, 'the bytes of interrupted uploads stay until the next sweep'),
  })
  closers.add('the sweep of interrupted uploads', () => sweeps.stop())
}
