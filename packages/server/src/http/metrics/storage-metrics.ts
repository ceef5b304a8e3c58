import { setImmediate } from 'node:timers'
import { type Aggregator, Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { CatalogStatistics } from '../../catalog/records.ts'
import { storageCauseOf, storageCauses } from '../../core/storage-error.ts'

/** The sources of the gauges, read at each scrape. */
interface Sources {
  readonly statistics: () => Promise<CatalogStatistics>
  /** The size of the file system of the data directory. Bytes. */
  readonly space: () => Promise<{ readonly free: number; readonly total: number }>
}

export interface StorageMetrics {
  readonly observeCommit: (seconds: number) => void
  readonly observeSync: (seconds: number) => void
  /** Counts an error of the storage; ignores all others. */
  readonly countError: (error: unknown) => void
  /** Adds the gauges. */
  readonly watch: (sources: Sources) => void
}

const latencies = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30]

/** The metrics of the data directory (docs/operations/monitoring.md). */
export function createStorageMetrics(registry: Registry): StorageMetrics {
  const registers = [registry]
  const commitSeconds = new Histogram({
    name: 'mediabucket_commit_seconds',
    help: 'Time of a write transaction of the catalog, its sync included.',
    buckets: latencies,
    registers,
  })
  const syncSeconds = new Histogram({
    name: 'mediabucket_fsync_seconds',
    help: 'Time of an fsync of a new file or of a directory.',
    buckets: latencies,
    registers,
  })
  const errors = new Counter({
    name: 'mediabucket_storage_errors_total',
    help: 'Requests that failed because of the disk or the catalog, by cause.',
    labelNames: ['cause'],
    registers,
  })
  for (const cause of storageCauses) errors.inc({ cause }, 0)

  return {
    observeCommit: (seconds) => commitSeconds.observe(seconds),
    observeSync: (seconds) => syncSeconds.observe(seconds),
    countError(error) {
      const cause = storageCauseOf(error)
      if (cause) errors.inc({ cause })
    },
    watch: (sources) => addGauges(registry, sources),
  }
}

function addGauges(registry: Registry, sources: Sources): void {
  /** The catalog is read once for all gauges of a scrape. */
  let statistics: Promise<CatalogStatistics> | null = null
  const readStatistics = () => {
    if (statistics === null) {
      statistics = sources.statistics()
      setImmediate(() => {
        statistics = null
      })
    }
    return statistics
  }
  /** All workers read the same value, so the metrics of several workers contain the first one. Other values need another `aggregator`. */
  const gauge = (name: string, help: string, read: () => Promise<number>, aggregator: Aggregator = 'first') =>
    new Gauge({
      name: `mediabucket_${name}`,
      help,
      aggregator,
      registers: [registry],
      async collect() {
        // A failed read must not hide the other metrics.
        this.set(await read().catch(() => Number.NaN))
      },
    })
  const catalogGauge = (
    name: string,
    help: string,
    select: (statistics: CatalogStatistics) => number,
    aggregator?: Aggregator,
  ) => gauge(name, help, async () => select(await readStatistics()), aggregator)
  const run = (kind: 'backup' | 'fsck', { upkeep }: CatalogStatistics) =>
    upkeep.find((one) => one.kind === kind)

  catalogGauge('items', 'Items in all buckets.', ({ items }) => items)
  catalogGauge('items_bytes', 'Bytes of the items in all buckets.', ({ bytes }) => bytes)
  catalogGauge('unfinished_uploads', 'Unfinished resumable uploads.', (read) => read.unfinishedUploads)
  catalogGauge(
    'unfinished_upload_bytes',
    'Bytes that unfinished resumable uploads have reserved: their lengths where known, otherwise the received bytes.',
    (read) => read.unfinishedBytes,
  )
  catalogGauge(
    'writer_queue_changes',
    'Catalog changes that wait for their commit.',
    (read) => read.waitingChanges,
    'sum',
  )
  catalogGauge('wal_bytes', 'Size of the write-ahead log of the catalog.', ({ logBytes }) => logBytes)
  gauge(
    'data_free_bytes',
    'Free bytes on the file system of the data directory.',
    async () => (await sources.space()).free,
  )
  gauge(
    'data_size_bytes',
    'Size of the file system of the data directory.',
    async () => (await sources.space()).total,
  )
  catalogGauge(
    'last_backup_timestamp_seconds',
    'When the last backup finished, in seconds since 1970; 0 where there was none.',
    (read) => (run('backup', read)?.finishedAt ?? 0) / 1000,
  )
  catalogGauge(
    'last_backup_faults',
    'Items that the last backup could not copy.',
    (read) => run('backup', read)?.faults ?? 0,
  )
  catalogGauge(
    'last_fsck_timestamp_seconds',
    'When the last fsck finished, in seconds since 1970; 0 where there was none.',
    (read) => (run('fsck', read)?.finishedAt ?? 0) / 1000,
  )
  catalogGauge(
    'last_fsck_faults',
    'Faults that remained after the last fsck.',
    (read) => run('fsck', read)?.faults ?? 0,
  )
}
