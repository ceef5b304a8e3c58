import { startPeriodicTask } from '../core/periodic-task.ts'
import { ensureBallast, readSpaces } from '../engines.ts'
import { createFreeSpace, type FreeSpace } from '../media/space/free-space.ts'
import { createFreeSpaceMonitor } from '../media/space/free-space-monitor.ts'
import type { StartContext } from './start-context.ts'

/** Milliseconds between checks of the free space. Uploads check it more often. */
const spaceCheckInterval = 1_000

/** The free space, from which the uploads of this process claim their bytes. */
export const openSpace = ({ config, peers }: Pick<StartContext, 'config' | 'peers'>): FreeSpace =>
  createFreeSpace({ readSpaces: () => readSpaces(config), now: () => performance.now(), peers })

/** Logs when the disk becomes too full for uploads and when it has enough space again, and reserves space for deletes. */
export function startSpaceWatch({ config, log, closers }: StartContext, space: FreeSpace): void {
  const checks = startPeriodicTask({
    work: createFreeSpaceMonitor({
      space,
      ensureBallast: () => ensureBallast(config),
      onFull: (full) =>
        log.error(
          { full },
          `uploads are refused until there is more free space on the disk of ${config.data}`,
        ),
      onFreed: () => log.info('uploads are accepted again'),
    }),
    interval: spaceCheckInterval,
    onFailure: (err) => log.warn({ err }, 'the free space of the disk cannot be read'),
  })
  closers.add('the watch of free space', () => checks.stop())
}
