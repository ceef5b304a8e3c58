import { removeLeftDirectories } from '../blobs/temporary-directories.ts'
import { startPeriodicTask } from '../core/periodic-task.ts'
import type { StartContext } from './start-context.ts'

/** Milliseconds between removals. */
const sweepInterval = 3600 * 1000

/** Removes the copies of files that killed processes have left in the directory for temporary files, now and at intervals. */
export async function startTemporarySweep({
  log,
  closers,
}: Pick<StartContext, 'log' | 'closers'>): Promise<void> {
  const onFailure = (err: unknown) =>
    log.warn({ err }, 'temporary copies of files that killed processes have left cannot be removed')
  const work = async () => {
    const directories = await removeLeftDirectories(Date.now())
    if (directories > 0) log.info({ directories }, 'removed temporary copies of files of killed processes')
  }
  await work().catch(onFailure)
  const sweeps = startPeriodicTask({ work, interval: sweepInterval, onFailure })
  closers.add('the sweep of temporary files', () => sweeps.stop())
}
