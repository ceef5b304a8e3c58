import type { ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers'
import { type Aggregator, Counter, Gauge, Histogram, Registry } from 'prom-client'
import { storageCauseOf, storageCauses } from '../core/faults.ts'
import { version } from '../core/version.ts'
import type { CatalogStatistics } from '../storage/catalog/records.ts'
import { PrelabelledHistogram } from './prelabelled-histogram.ts'
import { addProcessMetrics } from './process-metrics.ts'

/** `status` is null where the connection ended before the response began. */
type ResponseObserver = (status: number | null, seconds: number) => void

/**
 * The metrics of `/metrics` (docs/interface.md O2); one set for each process, without the global registry. With several
 * workers, their metrics are added, except where `aggregator` is set.
 */
export function createMetrics() {
  const registry = new Registry()
  let hasDefaults = false
  /** From the first scrape on: a service that nobody scrapes measures nothing. */
  function collectDefaults(): void {
    if (hasDefaults) return
    hasDefaults = true
    addProcessMetrics(registry)
  }
  const duration = new PrelabelledHistogram({
    name: 'mediabucket_http_request_duration_seconds',
    help: 'Time from the end of a request’s headers to the end of its response.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30],
    registers: [registry],
  })
  const uploadedBytes = new Counter({
    name: 'mediabucket_uploaded_bytes_total',
    help: 'Bytes of the items stored.',
    registers: [registry],
  })
  const uploadedItems = new Counter({
    name: 'mediabucket_uploaded_items_total',
    help: 'Items stored.',
    registers: [registry],
  })
  const deletedItems = new Counter({
    name: 'mediabucket_deleted_items_total',
    help: 'Items deleted.',
    registers: [registry],
  })
  const limitedRequests = new Counter({
    name: 'mediabucket_limited_requests_total',
    help: 'Requests refused with 429, by rate limit.',
    labelNames: ['limit'],
    registers: [registry],
  })
  for (const limit of ['token', 'address', 'authentication']) limitedRequests.inc({ limit }, 0)
  const refusedConnections = new Counter({
    name: 'mediabucket_connections_refused_total',
    help: 'Connections refused, by limit.',
    labelNames: ['reason'],
    registers: [registry],
  })
  for (const reason of ['total', 'address']) refusedConnections.inc({ reason }, 0)
  const closedIdleConnections = new Counter({
    name: 'mediabucket_idle_connections_closed_total',
    help: 'Idle connections that were closed to make room for new ones at a limit of connections.',
    registers: [registry],
  })
  const workerRestarts = new Counter({
    name: 'mediabucket_worker_restarts_total',
    help: 'Workers that were started in the place of one that had ended; 0 with one process.',
    registers: [registry],
  })
  const slowReaders = new Counter({
    name: 'mediabucket_slow_readers_closed_total',
    help: 'Connections closed because their clients read fewer than 2,000 bytes per second.',
    registers: [registry],
  })
  /** `open` returns how many connections are open. */
  function countConnections(open: () => number): void {
    new Gauge({
      name: 'mediabucket_connections_open',
      help: 'Open connections of clients.',
      registers: [registry],
      collect() {
        this.set(open())
      },
    })
  }
  const unreadClosed = new Counter({
    name: 'mediabucket_unread_responses_closed_total',
    help: 'Connections closed because the responses that clients had not read took too much memory.',
    registers: [registry],
  })
  /** `unread` returns the bytes of responses that clients have not read. */
  function watchUnreadBytes(unread: () => number): void {
    new Gauge({
      name: 'mediabucket_unread_response_bytes',
      help: 'Bytes of responses in memory that clients have not read, without those of caches.',
      registers: [registry],
      collect() {
        this.set(unread())
      },
    })
  }
  const sentChanges = new Counter({
    name: 'mediabucket_feed_changes_sent_total',
    help: 'Changes of items that were sent to readers of feeds.',
    registers: [registry],
  })
  const refusedStreams = new Counter({
    name: 'mediabucket_feed_streams_refused_total',
    help: 'Streams of changes, and requests that wait for changes, that were refused because their token or address has too many of them.',
    registers: [registry],
  })
  /** `open` returns how many streams and waiting requests there are. */
  function watchFeed(open: () => number): void {
    new Gauge({
      name: 'mediabucket_feed_streams_open',
      help: 'Open streams of changes, and requests that wait for changes.',
      registers: [registry],
      collect() {
        this.set(open())
      },
    })
  }
  const variantSeconds = new Histogram({
    name: 'mediabucket_variant_seconds',
    help: 'Time from the first request for a variant, or the start of its render ahead, until it was rendered or had failed; stored variants are not counted.',
    labelNames: ['variant', 'outcome'],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 5, 20],
    registers: [registry],
  })
  const activeUploads = new Gauge({
    name: 'mediabucket_active_uploads',
    help: 'Upload requests in progress: to /api/media, or chunks of resumable uploads.',
    registers: [registry],
  })
  /** Counts an upload request until its response has ended. */
  function countActiveUpload(response: ServerResponse): void {
    activeUploads.inc()
    response.once('close', () => activeUploads.dec())
  }
  const lostDownloadEvents = new Counter({
    name: 'mediabucket_audit_downloads_lost_total',
    help: 'Downloads that were not recorded in the audit log, because the disk is nearly full, or events were added faster than they could be stored.',
    registers: [registry],
  })
  const webhookDeliveries = new Counter({
    name: 'mediabucket_webhook_deliveries_total',
    help: 'Attempts to deliver changes to webhooks, by outcome; without tests and repetitions that people have asked for.',
    labelNames: ['outcome'],
    registers: [registry],
  })
  for (const outcome of ['delivered', 'failed']) webhookDeliveries.inc({ outcome }, 0)
  /** `dropped` returns how many lines were dropped so far. */
  function watchLog(dropped: () => number): void {
    new Counter({
      name: 'mediabucket_log_lines_dropped_total',
      help: 'Lines of the log that were dropped, because what reads or stores the log was too slow or failed.',
      registers: [registry],
      collect() {
        this.reset()
        this.inc(dropped())
      },
    })
  }
  const buildInfo = new Gauge({
    name: 'mediabucket_build_info',
    help: 'Always 1; the labels are the versions of Mediabucket and Node.js.',
    labelNames: ['version', 'node'],
    aggregator: 'first',
    registers: [registry],
  })
  buildInfo.set({ version, node: process.versions.node }, 1)
  const storage = createStorageMetrics(registry)

  /** `bytes` returns the size of the cache. */
  function watchPageLinkCache(bytes: () => number): void {
    new Gauge({
      name: 'mediabucket_page_link_cache_bytes',
      help: 'Size of the cache of the page links that all pages share.',
      registers: [registry],
      collect() {
        this.set(bytes())
      },
    })
  }
  /** `read` returns the hits and misses so far, and the size in bytes. */
  function watchBytesCache(
    read: () => { readonly hits: number; readonly misses: number; readonly size: number },
  ): void {
    new Counter({
      name: 'mediabucket_bytes_cache_requests_total',
      help: 'Requests for files and thumbnails that the cache of bytes may hold, by result.',
      labelNames: ['result'],
      registers: [registry],
      collect() {
        const { hits, misses } = read()
        this.reset()
        this.inc({ result: 'hit' }, hits)
        this.inc({ result: 'miss' }, misses)
      },
    })
    new Gauge({
      name: 'mediabucket_bytes_cache_bytes',
      help: 'Size of the cache of bytes.',
      registers: [registry],
      collect() {
        this.set(read().size)
      },
    })
  }
  /** `length` returns how many items wait. */
  function watchRenderAhead(length: () => number): void {
    new Gauge({
      name: 'mediabucket_render_ahead_items',
      help: 'New items whose thumbnails wait to be rendered ahead of their first requests.',
      registers: [registry],
      collect() {
        this.set(length())
      },
    })
  }
  /** `isReadOnly` is whether the operator has switched off changes. */
  function watchReadOnly(isReadOnly: () => boolean): void {
    new Gauge({
      name: 'mediabucket_read_only',
      help: 'Whether requests that change something are refused (MEDIABUCKET_READ_ONLY): 1 or 0.',
      aggregator: 'max',
      registers: [registry],
      collect() {
        this.set(isReadOnly() ? 1 : 0)
      },
    })
  }
  /** `check` returns whether the service can serve data and store uploads now. */
  function watchReadiness(check: () => Promise<{ readonly reads: boolean; readonly writes: boolean }>): void {
    new Gauge({
      name: 'mediabucket_ready',
      help: 'Whether the service can serve its data (reads) and store uploads (writes) now: 1 or 0.',
      labelNames: ['for'],
      aggregator: 'first',
      registers: [registry],
      async collect() {
        const { reads, writes } = await check().catch(() => ({ reads: false, writes: false }))
        this.set({ for: 'reads' }, reads ? 1 : 0)
        this.set({ for: 'writes' }, writes ? 1 : 0)
      },
    })
  }
  const observers = new Map<string, Map<string, ResponseObserver>>()
  /** One observer for each method and route. */
  function responseObserver(method: string, route: string): ResponseObserver {
    const byMethod = observers.get(route) ?? new Map<string, ResponseObserver>()
    const known = byMethod.get(method)
    if (known) return known
    observers.set(route, byMethod)
    const byStatus = new Map<number | null, (seconds: number) => void>()
    const observe: ResponseObserver = (status, seconds) => {
      let observeStatus = byStatus.get(status)
      if (!observeStatus) {
        observeStatus = duration.observer({ method, route, status: status ?? 'none' })
        byStatus.set(status, observeStatus)
      }
      observeStatus(seconds)
    }
    byMethod.set(method, observe)
    return observe
  }

  return {
    registry,
    /** The response of `/metrics`. */
    text() {
      collectDefaults()
      return registry.metrics()
    },
    /** The values, for the sums over all workers. */
    snapshot() {
      collectDefaults()
      return registry.getMetricsAsJSON()
    },
    responseObserver,
    uploadedBytes,
    uploadedItems,
    deletedItems,
    limitedRequests,
    refusedConnections,
    closedIdleConnections,
    countConnections,
    slowReaders,
    unreadClosed,
    watchUnreadBytes,
    sentChanges,
    refusedStreams,
    watchFeed,
    workerRestarts,
    lostDownloadEvents,
    webhookDeliveries,
    watchLog,
    variantSeconds,
    countActiveUpload,
    storage,
    watchPageLinkCache,
    watchBytesCache,
    watchRenderAhead,
    watchReadiness,
    watchReadOnly,
  }
}

export type Metrics = ReturnType<typeof createMetrics>

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
    help: 'Requests that failed because of the disk, the database or the store, by cause.',
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
  catalogGauge(
    'expired_items',
    'Items that have expired and are not removed yet. Lists and totals omit them.',
    ({ expiredItems }) => expiredItems,
  )
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
  catalogGauge(
    'webhooks_failing',
    'Webhooks whose last delivery failed and will be repeated.',
    ({ failingWebhooks }) => failingWebhooks,
  )
  catalogGauge(
    'webhooks_stopped',
    'Webhooks that were switched off because of their receivers: after three days of failures, or a response 410.',
    ({ stoppedWebhooks }) => stoppedWebhooks,
  )
  catalogGauge(
    'first_bucket_timestamp_seconds',
    'When the oldest bucket was created, in seconds since 1970; 0 where there is none.',
    ({ firstBucketAt }) => (firstBucketAt ?? 0) / 1000,
  )
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
