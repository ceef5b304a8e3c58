import { statfsSync } from 'node:fs'
import type { Logger } from 'pino'
import { ensureSigningKey } from '../access/signed-links.ts'
import { BucketDeleter } from '../buckets/bucket-deletion.ts'
import type { PeerCounts } from '../core/peer-counts.ts'
import { Closers, PeriodicTask, resolvesWithin } from '../core/tasks.ts'
import type { Metrics } from '../http/metrics.ts'
import { type BlobDeletionParts, createDeferredDeletions, intentLog } from '../items/blob-deletion.ts'
import { ItemRemover } from '../items/deletion.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import { epochPattern } from '../storage/catalog/checks/meta.ts'
import {
  findExposed,
  lockData,
  openBlobs,
  openBlobsDirectory,
  openCatalog,
  watchBackupHold,
} from '../storage/engines.ts'
import { createAnnouncementRecorder, readAnnouncedChanges } from '../upkeep/announced-changes.ts'
import { matchBlobsDirectory } from '../upkeep/blobs-identity.ts'
import { requireNoRestore } from '../upkeep/interrupted-restore.ts'
import { recover } from '../upkeep/recovery.ts'
import { partLog } from '../uploads/resumable-uploads.ts'
import type { Config } from './config.ts'

/** What every step of the start receives. */
export interface StartContext {
  readonly config: Config
  readonly log: Logger
  readonly metrics: Metrics
  readonly closers: Closers
  /** The other workers of the service; null if it has one process. */
  readonly peers: PeerCounts | null
}

/** Runs the steps of a start. Each registers what it opens with `closers`; if one fails, these are closed, the last one first. */
export async function startInSteps<Started>(
  parts: Omit<StartContext, 'closers'>,
  run: (context: StartContext) => Promise<Started>,
): Promise<Started> {
  const closers = new Closers((what, err) => parts.log.error({ err }, `${what} did not close`))
  try {
    return await run({ ...parts, closers })
  } catch (error) {
    await closers.closeAll().catch(() => undefined)
    throw error
  }
}

export interface OpenData {
  readonly catalog: Catalog
  readonly blobs: BlobStore
  /** What the deletion of blobs needs. */
  readonly blobDeletion: BlobDeletionParts & { readonly catalog: Catalog; readonly blobs: BlobStore }
  /** Deletes the blobs whose deletion a backup deferred, once the backup has ended. */
  readonly retryDeferredDeletions: () => Promise<void>
}

/** Locks the data directory for this server. Only the process that holds the lock recovers and sweeps. */
export function lockDirectory({ config, log, closers }: StartContext): void {
  const lock = lockData(config)
  closers.add('the data lock', () => lock.release())
  // With the lock: a restore that is killed after an earlier check would leave a catalog to be created here.
  requireNoRestore(config.data)
  const exposed = findExposed(config)
  if (exposed.length > 0)
    log.warn({ exposed }, `other users may read these in ${config.data}; run: chmod -R go= on each`)
}

/** Opens the catalog and the blob store, and checks that they belong together. `owner` is the name of a worker. */
export async function openData(
  { config, log, metrics, closers }: StartContext,
  onFailure: (error: Error) => void,
  owner?: string,
): Promise<OpenData> {
  const catalog = await openCatalog(config, {
    writer: 'thread',
    onWriterFailure: onFailure,
    onCommit: (seconds) => metrics.storage.observeCommit(seconds),
    onRenewal: () =>
      log.warn(
        'the data have gone back to an earlier state, or are a copy: readers of the feed list the items again, and webhooks send changes.lost (docs/operations/earlier-data.md)',
      ),
  })
  closers.add('the catalog', () => catalog.close())
  await matchBlobsDirectory({ catalog, directory: await openBlobsDirectory(config) })
  const blobs = await openBlobs(
    config,
    { intents: intentLog(catalog), parts: partLog(catalog) },
    {
      owner,
      onSync: (seconds) => metrics.storage.observeSync(seconds),
      onVariantDamage: (reason) =>
        log.warn({ reason }, 'variants.db was damaged and is created again; its variants are rendered again'),
    },
  )
  closers.add('the blob store', () => blobs.close())
  metrics.storage.watch({ statistics: () => inTime(catalog.statistics()), space: () => spaceOf(config.data) })

  const hold = watchBackupHold(config)
  closers.add('the backup hold', () => hold.close())
  const deletionParts = {
    catalog,
    blobs,
    isBackupRunning: hold.isHeld,
    onDeletionFailure: (id: string, err: unknown) =>
      log.warn({ id, err }, 'the bytes of a deleted item stay until the next sweep or start'),
  }
  const deferred = createDeferredDeletions({
    ...deletionParts,
    onHoldFailure: (err) =>
      log.error(
        { err },
        'hold.db cannot be read, so the bytes of deleted items stay; restart the service if this continues',
      ),
  })
  const blobDeletion = { ...deletionParts, isBackupRunning: deferred.isBackupRunning }
  return { catalog, blobs, blobDeletion, retryDeferredDeletions: deferred.retry }
}

/** Milliseconds. A scrape does not wait longer for a catalog that does not respond; Prometheus waits for 10 seconds. */
const statisticsTimeout = 2_000

async function inTime<T>(read: Promise<T>): Promise<T> {
  if (await resolvesWithin(read, statisticsTimeout)) return read
  throw new Error('the catalog does not respond')
}

/** Finishes what an interrupted run left. Only while no other process of the server writes. */
export async function recoverData(
  { config, log }: Pick<StartContext, 'config' | 'log'>,
  { blobDeletion }: Pick<OpenData, 'blobDeletion'>,
): Promise<void> {
  const { leftovers, ...cleared } = await recover(blobDeletion)
  for (const { id, error } of leftovers) blobDeletion.onDeletionFailure(id, error)
  if (!epochPattern.test(blobDeletion.catalog.epoch))
    log.warn(
      'the epoch of the catalog is missing or malformed, so cursors and entity tags of other data may be accepted; run: mediabucket fsck --repair',
    )
  if (cleared.temporary + cleared.tombstones + cleared.rewound + cleared.orphans > 0)
    log.info(cleared, 'recovered after an interrupted run')
  await blobDeletion.catalog
    .storeAudit(config.audit !== 'off')
    .catch((err: unknown) =>
      log.warn({ err }, 'commands use the earlier setting of the audit log until the catalog can be written'),
    )
  await prepareSigning(blobDeletion.catalog).catch((err: unknown) =>
    log.warn(
      { err },
      'no key was created, so private buckets have no signed URLs until the catalog can be written',
    ),
  )
}

/** Milliseconds between two records of what readers of the feeds have received. */
const recordInterval = 10_000

/**
 * Notices that the data have gone back since the last run, and records the changes that this process announces, so that the next start notices it too. Only in one
 * process of a service, the one that delivers to webhooks.
 */
export async function checkDataHistory(
  {
    config,
    log,
    closers,
  }: {
    readonly config: Pick<Config, 'data' | 'blobsUrl'>
    readonly log: Pick<Logger, 'warn'>
    readonly closers: Pick<Closers, 'add'>
  },
  { catalog }: { readonly catalog: Pick<Catalog, 'checkHistory' | 'announcedChanges'> },
): Promise<void> {
  const directory = await openBlobsDirectory(config)
  const announced = await readAnnouncedChanges(directory)
  const record = createAnnouncementRecorder({ catalog, directory, earlier: announced })
  let isChecked = false
  // The record of the last run is replaced only after the comparison with it.
  async function checkAndRecord(): Promise<void> {
    if (!isChecked) await catalog.checkHistory(announced, true)
    isChecked = true
    await record()
  }
  const onFailure = (err: unknown) =>
    log.warn(
      { err },
      isChecked
        ? 'what readers of the feed have received could not be recorded'
        : 'whether the data have gone back is checked again in 10 seconds, because the catalog cannot be read or written',
    )
  await checkAndRecord().catch(onFailure)
  const records = new PeriodicTask({ work: checkAndRecord, interval: recordInterval, onFailure })
  closers.add('the record of the announced changes', async () => {
    await records.stop()
    if (isChecked) await record().catch(() => undefined)
  })
}

/** Requests that list a private bucket sign URLs. */
async function prepareSigning(catalog: Catalog): Promise<void> {
  if (await catalog.hasPrivateBuckets()) await ensureSigningKey(catalog, Date.now())
}

/** The size of a directory's file system. Bytes. Takes microseconds, and no thread of libuv's pool, which a scrape would start. */
async function spaceOf(directory: string): Promise<{ free: number; total: number }> {
  const { bsize, bavail, blocks } = statfsSync(directory)
  return { free: bavail * bsize, total: blocks * bsize }
}

/** Creates what deletes buckets. */
export function startBucketRemovals(
  { log, closers }: Pick<StartContext, 'log' | 'closers'>,
  { blobDeletion }: Pick<OpenData, 'blobDeletion'>,
): BucketDeleter {
  const deleter = new BucketDeleter({
    ...blobDeletion,
    now: Date.now,
    onRemoved: (bucketId, items) => log.info({ bucketId, items }, 'removed what a deleted bucket held'),
    onFailure: (bucketId, err) =>
      log.warn({ err, bucketId }, 'what a deleted bucket held stays until a later sweep'),
  })
  closers.add('the removal of deleted buckets', () => deleter.stop())
  return deleter
}

/** Milliseconds between checks whether a backup that delayed removals has ended. */
const retryInterval = 1_000

/** Creates the operations that delete items, and retries the removals that a backup delayed. */
export function startRemovals(
  { log, closers }: StartContext,
  { blobDeletion, retryDeferredDeletions }: Pick<OpenData, 'blobDeletion' | 'retryDeferredDeletions'>,
): ItemRemover {
  const remover = new ItemRemover({
    ...blobDeletion,
    onManyExpired: (bucketId, left) =>
      log.info(
        { bucketId, left },
        'many items of a bucket have expired; lists omit them while they are removed',
      ),
  })
  closers.add('the removal of bytes', () => remover.stop())
  const retries = new PeriodicTask({
    work: retryDeferredDeletions,
    interval: retryInterval,
    onFailure: (err) => log.warn({ err }, 'bytes whose removal a backup delayed stay until the next retry'),
  })
  closers.add('the removal retry', () => retries.stop())
  return remover
}
