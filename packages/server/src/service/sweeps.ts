import { startPeriodicTask } from '../core/tasks.ts'
import { createIntentSweep, deleteBlobs, intentSweepInterval } from '../items/blob-deletion.ts'
import { removeExpiredItems } from '../items/deletion.ts'
import { purgeExpiredTrash } from '../items/trash.ts'
import { removeLeftDirectories } from '../storage/temporary-directories.ts'
import { removeExpired } from '../uploads/resumable-uploads.ts'
import type { OpenData, StartContext } from './data.ts'

/** Milliseconds between sweeps of the audit log. */
const auditSweepInterval = 600_000
/** Events in one transaction. It takes some milliseconds, during which uploads wait. */
const eventsPerBatch = 500
const day = 86_400_000

/** Removes the events whose days in the audit log have passed, in the background: now and periodically. One process of a service does it. */
export function startAuditSweep(
  { config, log, closers }: StartContext,
  { catalog }: Pick<OpenData, 'catalog'>,
): void {
  let isStopping = false
  async function work(): Promise<void> {
    const before = Date.now() - config.auditDays * day
    while (!isStopping && (await catalog.removeEvents(before, eventsPerBatch)) === eventsPerBatch);
  }
  const onFailure = (err: unknown) =>
    log.warn({ err }, 'old events of the audit log stay until the next sweep')
  const first = work().catch(onFailure)
  const sweeps = startPeriodicTask({ work, interval: auditSweepInterval, onFailure })
  closers.add('the sweep of the audit log', () => {
    isStopping = true
    return Promise.all([first, sweeps.stop()])
  })
}

/** Milliseconds between sweeps; shorter where uploads expire sooner. */
const longestSweepInterval = 600_000

/** Removes expired uploads, idempotency keys, items, and items of the trash, now and periodically. One process of a service does it. */
export async function startExpirySweep(
  { config, log, closers }: StartContext,
  {
    catalog,
    blobs,
    locks,
    blobDeletion,
  }: Pick<OpenData, 'catalog' | 'blobs' | 'blobDeletion'> &
    Pick<Parameters<typeof removeExpired>[0], 'locks'>,
): Promise<void> {
  const sweep = async () => {
    await removeExpired({ catalog, blobs, locks, now: Date.now })
    await purgeExpiredTrash({ catalog, blobDeletion, now: Date.now })
    await removeExpiredItems({ catalog, blobDeletion, now: Date.now })
  }
  await sweep()
  const sweeps = startPeriodicTask({
    work: sweep,
    interval: Math.min(config.uploadExpiry, longestSweepInterval),
    onFailure: (err) => log.warn({ err }, 'expired uploads and items stay until the next sweep'),
  })
  closers.add('the expiry sweep', () => sweeps.stop())
}

/** Items whose bytes are deleted before the sweep checks whether the service stops. */
const itemsPerBatch = 100

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
    for (let done = 0; !isStopping && done < tombstones.length; done += itemsPerBatch)
      await deleteBlobs(blobDeletion, tombstones.slice(done, done + itemsPerBatch))
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
