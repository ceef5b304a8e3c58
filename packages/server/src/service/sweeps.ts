import { setTimeout } from 'node:timers/promises'
import type { BucketDeleter } from '../buckets/bucket-deletion.ts'
import { BucketVariants } from '../core/bucket-pictures.ts'
import { PeriodicTask, runInSteps } from '../core/tasks.ts'
import { keptDays } from '../core/usage-queries.ts'
import type { OpenBytes } from '../downloads/bytes-cache.ts'
import { createIntentSweep, deleteBlobs, intentSweepInterval } from '../items/blob-deletion.ts'
import type { ItemRemover } from '../items/deletion.ts'
import { purgeExpiredTrash } from '../items/trash-operations.ts'
import { removeExpiredMultiparts } from '../objects/multipart-expiry.ts'
import { fillTakenOperation } from '../pictures/fill-taken-times.ts'
import { sweepStaleOperation } from '../pictures/stale-variants.ts'
import type { BucketId } from '../storage/catalog/records.ts'
import { ensureBallast } from '../storage/engines.ts'
import { removeLeftDirectories } from '../storage/temporary-directories.ts'
import { removeExpiredUploads } from '../uploads/resumable-uploads.ts'
import { createFreeSpaceMonitor, type FreeSpace } from '../uploads/space.ts'
import type { OpenData, StartContext } from './data.ts'

/** Milliseconds between sweeps of the audit log, and of the feed. */
const logSweepInterval = 600_000
/** Events, or changes of the feed, in one transaction. It takes some milliseconds, during which uploads wait. */
const eventsPerBatch = 500
/** Days of buckets in one transaction, which changes more pages. */
const usagePerBatch = 100
const day = 86_400_000
/** Items whose bytes are deleted before the sweep checks whether the service stops. */
const itemsPerBatch = 100
/** Milliseconds between removals of temporary files. */
const temporarySweepInterval = 3600 * 1000
/** Milliseconds between checks of the free space. Uploads check it more often. */
const spaceCheckInterval = 1_000
/** Milliseconds between removals of what has expired; shorter where uploads expire sooner. */
const longestSweepInterval = 300_000
/** Milliseconds between checks for deleted buckets whose removal no process goes on with. */
const bucketSweepInterval = 5_000

/** Starts what one process of a service does now and then. Resolves when temporary files of killed processes are removed. */
export async function startSweeps(context: StartContext, { catalog, blobDeletion }: OpenData): Promise<void> {
  const { config, log } = context

  // In the background.
  const removeInterrupted = createIntentSweep(blobDeletion)
  const interrupted = {
    name: 'the sweep of interrupted uploads',
    interval: intentSweepInterval,
    failure: 'the bytes of interrupted uploads and deleted items stay until the next sweep',
  }
  void startSweep(context, interrupted, async (isStopping) => {
    const removed = await removeInterrupted(isStopping)
    if (removed > 0) log.info({ removed }, 'removed the bytes of interrupted uploads')
    // Of deleted items, when the removal of the bytes has failed.
    const tombstones = await catalog.listTombstones()
    for (let done = 0; !isStopping() && done < tombstones.length; done += itemsPerBatch)
      await deleteBlobs(blobDeletion, tombstones.slice(done, done + itemsPerBatch))
  })

  const auditLog = {
    name: 'the sweep of the audit log',
    interval: logSweepInterval,
    failure: 'old events of the audit log stay until the next sweep',
  }
  void startSweep(context, auditLog, async (isStopping) => {
    const before = Date.now() - config.auditDays * day
    await runInSteps(
      async () => (await catalog.removeEvents(before, eventsPerBatch)) === eventsPerBatch,
      isStopping,
    )
  })

  const feed = {
    name: 'the sweep of the feed',
    interval: logSweepInterval,
    failure: 'old changes stay in the feed until the next sweep',
  }
  void startSweep(context, feed, async (isStopping) => {
    const before = Date.now() - config.changesDays * day
    await runInSteps(async () => (await catalog.removeChanges(before, eventsPerBatch)) > 0, isStopping)
  })

  const usage = {
    name: 'the sweep of usage',
    interval: logSweepInterval,
    failure: 'the usage of old days stays until the next sweep',
  }
  void startSweep(context, usage, async (isStopping) => {
    const before = Date.now() - (keptDays - 1) * day
    await runInSteps(async () => (await catalog.removeUsage(before, usagePerBatch)) > 0, isStopping)
  })

  // Copies of files that killed processes have left in the directory for temporary files.
  const temporary = {
    name: 'the sweep of temporary files',
    interval: temporarySweepInterval,
    failure: 'temporary copies of files that killed processes have left cannot be removed',
  }
  await startSweep(context, temporary, async () => {
    const directories = await removeLeftDirectories(Date.now())
    if (directories > 0) log.info({ directories }, 'removed temporary copies of files of killed processes')
  })
}

/** Watches the free space, without which uploads are refused. */
export function watchFreeSpace({ config, log, closers }: StartContext, space: FreeSpace): void {
  const spaceChecks = new PeriodicTask({
    work: createFreeSpaceMonitor({
      space,
      ensureBallast: (reserve) => ensureBallast(config, reserve),
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
  closers.add('the watch of free space', () => spaceChecks.stop())
}

/**
 * Removes what has expired, now and at each interval, in the background. Reads leave it out until it is removed. Each kind has a sweep of its own, so
 * that a failure or many items of one kind do not delay the others.
 */
export function startExpirySweeps(
  context: StartContext,
  { catalog, blobs, blobDeletion }: OpenData,
  parts: {
    readonly locks: Parameters<typeof removeExpiredUploads>[0]['locks']
    readonly remover: Pick<ItemRemover, 'expire' | 'stop' | 'deleteLater'>
    readonly deleter: Pick<BucketDeleter, 'removeDeleted' | 'stop'>
  },
): void {
  const { locks, remover, deleter } = parts
  const onFailure = (bucketId: BucketId, err: unknown) =>
    context.log.warn({ err, bucketId }, 'expired items of a bucket stay until a later sweep')
  const interval = Math.min(context.config.uploadExpiry, longestSweepInterval)
  const uploads = {
    name: 'the sweep of expired uploads',
    interval,
    failure: 'expired uploads stay until the next sweep',
  }
  void startSweep(
    context,
    uploads,
    async (isStopping) =>
      void (await removeExpiredUploads({ catalog, blobs, locks, now: Date.now, isStopping })),
  )
  const multiparts = {
    name: 'the sweep of expired uploads in parts',
    interval,
    failure: 'expired uploads in parts stay until the next sweep',
  }
  void startSweep(context, multiparts, async (isStopping) => {
    const deleteLater = remover.deleteLater.bind(remover)
    await removeExpiredMultiparts({ catalog, deleteLater, now: Date.now, isStopping })
  })
  const trash = {
    name: 'the sweep of the trash',
    interval,
    failure: 'expired items of a trash stay until the next sweep',
  }
  void startSweep(context, trash, (isStopping) =>
    purgeExpiredTrash({ catalog, blobDeletion, now: Date.now, isStopping, onFailure }),
  )
  const items = {
    name: 'the sweep of expired items',
    interval,
    failure: 'expired items stay until the next sweep',
    onStop: () => void remover.stop(),
  }
  void startSweep(context, items, () =>
    remover.expire({ list: () => catalog.expiringBuckets(Date.now()), onFailure }),
  )
  const buckets = {
    name: 'the sweep of deleted buckets',
    interval: bucketSweepInterval,
    failure: 'what deleted buckets held stays until the next sweep',
    onStop: () => void deleter.stop(),
  }
  void startSweep(context, buckets, () => deleter.removeDeleted())
}

/** Milliseconds between passes over the items whose upload did not read when they were taken. Mostly there are none. */
const takenSweepInterval = 600_000

/** Reads the times at which pictures and videos were taken that their uploads did not read, in the background. */
export function startTakenSweep(
  context: StartContext,
  { catalog }: Pick<OpenData, 'catalog'>,
  openBytes: OpenBytes,
): void {
  const stopped = new AbortController()
  const rest = (milliseconds: number) =>
    setTimeout(milliseconds, undefined, { signal: stopped.signal }).catch(() => undefined)
  const fillTaken = fillTakenOperation({ catalog, openBytes, now: Date.now, rest })
  const taken = {
    name: 'the sweep of the times at which items were taken',
    interval: takenSweepInterval,
    failure: 'items whose upload did not read when they were taken are read at the next sweep',
    onStop: () => stopped.abort(),
  }
  void startSweep(context, taken, async (isStopping) => {
    const found = await fillTaken(isStopping)
    if (found > 0) context.log.info({ found }, 'found the times at which pictures and videos were taken')
  })
}

/** Milliseconds between checks of the sizes of buckets. */
const sizesSweepInterval = 600_000

/** Removes the stored variants of sizes that their buckets no longer have, in the background (docs/interface.md V19). */
export function startSizesSweep(
  context: StartContext,
  { catalog, blobs }: Pick<OpenData, 'catalog' | 'blobs'>,
): void {
  const stopped = new AbortController()
  const rest = (milliseconds: number) =>
    setTimeout(milliseconds, undefined, { signal: stopped.signal }).catch(() => undefined)
  const variants = new BucketVariants(context.config)
  const sweepStale = sweepStaleOperation({ catalog, blobs, variants, rest })
  const sizes = {
    name: 'the sweep of variants of earlier sizes',
    interval: sizesSweepInterval,
    failure: 'variants of earlier sizes stay until the next sweep',
    onStop: () => stopped.abort(),
  }
  void startSweep(context, sizes, async (isStopping) => {
    const removed = await sweepStale(isStopping)
    if (removed > 0) context.log.info({ removed }, 'removed variants of sizes that no longer exist')
  })
}

/** Runs the work now and at each interval. Resolves when the first run has ended; a stop waits for each run. */
async function startSweep(
  { log, closers }: StartContext,
  sweep: {
    readonly name: string
    /** Milliseconds. */
    readonly interval: number
    /** The line of the log when it fails. */
    readonly failure: string
    readonly onStop?: () => void
  },
  sweepOnce: (isStopping: () => boolean) => Promise<void>,
): Promise<void> {
  let isStopping = false
  let isRunning = true
  const work = () => sweepOnce(() => isStopping)
  const onFailure = (err: unknown) => log.warn({ err }, sweep.failure)
  const first = work()
    .catch(onFailure)
    .finally(() => {
      isRunning = false
    })
  const task = new PeriodicTask({
    work: async () => void (isRunning || (await work())),
    interval: sweep.interval,
    onFailure,
  })
  closers.add(sweep.name, () => {
    isStopping = true
    sweep.onStop?.()
    return Promise.all([first, task.stop()])
  })
  await first
}
