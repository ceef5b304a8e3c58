import { startPeriodicTask } from '../core/periodic-task.ts'
import type { OpenData } from './open-data.ts'
import type { StartContext } from './start-context.ts'

/** Milliseconds between sweeps. */
const interval = 600_000
/** Events in one transaction. It takes some milliseconds, during which uploads wait. */
const batchLength = 500
const day = 86_400_000

/** Removes the events whose days in the audit log have passed, in the background: now and periodically. One process of a service does it. */
export function startAuditSweep(
  { config, log, closers }: StartContext,
  { catalog }: Pick<OpenData, 'catalog'>,
): void {
  let isStopping = false
  async function work(): Promise<void> {
    const before = Date.now() - config.auditDays * day
    while (!isStopping && (await catalog.removeEvents(before, batchLength)) === batchLength);
  }
  const onFailure = (err: unknown) =>
    log.warn({ err }, 'old events of the audit log stay until the next sweep')
  const first = work().catch(onFailure)
  const sweeps = startPeriodicTask({ work, interval, onFailure })
  closers.add('the sweep of the audit log', () => {
    isStopping = true
    return Promise.all([first, sweeps.stop()])
  })
}
