import { startPeriodicTask } from '../core/periodic-task.ts'
import { removeExpiredItems } from '../media/deletion/expire-items.ts'
import { purgeExpiredTrash } from '../media/deletion/trash.ts'
import { removeExpired } from '../media/uploads/remove-expired.ts'
import type { OpenData } from './open-data.ts'
import type { StartContext } from './start-context.ts'

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
