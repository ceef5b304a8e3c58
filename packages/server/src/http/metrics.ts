import type { ServerResponse } from 'node:http'
import { type Aggregator, Counter, Gauge, Histogram, Registry } from 'prom-client'
import { storageCauseOf, storageCauses } from '../core/faults.ts'
import { version } from '../core/version.ts'
import type { CatalogStatistics } from '../storage/catalog/records.ts'
import { catalogGauges, ScrapeStatistics } from './catalog-gauges.ts'
import { PrelabelledHistogram, type Series } from './prelabelled-histogram.ts'
import { addProcessMetrics } from './process-metrics.ts'
import { ScanMetrics } from './scan-metrics.ts'

/** How an upload from a URL ends: `ended` if the client closed its connection, or the service stopped. */
export const urlUploadOutcomes = [
  'stored',
  'source-refused',
  'source-failed',
  'source-timeout',
  'refused',
  'ended',
  'failed',
] as const
export type UrlUploadOutcome = (typeof urlUploadOutcomes)[number]

/**
 * The metrics of `/metrics` (docs/interface.md O2); one set for each process, without the global registry. With several workers,
 * their metrics are added, except where an aggregator is named. The methods `watch…` add metrics that each scrape reads.
 */
export class Metrics {
  readonly registry = new Registry()
  readonly #textOfWorkers: (() => Promise<string>) | null
  #hasDefaults = false
  readonly #duration = new PrelabelledHistogram({
    name: 'mediabucket_http_request_duration_seconds',
    help: 'Time from the end of a request’s headers to the end of its response.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30],
    registers: [this.registry],
  })
  readonly #observers = new Map<string, Map<string, ResponseObserver>>()
  readonly uploadedBytes = counter(
    this.registry,
    'mediabucket_uploaded_bytes_total',
    'Bytes of the items stored.',
  )
  readonly uploadedItems = counter(this.registry, 'mediabucket_uploaded_items_total', 'Items stored.')
  readonly deletedItems = counter(this.registry, 'mediabucket_deleted_items_total', 'Items deleted.')
  readonly limitedRequests = labelledCounter(
    this.registry,
    'mediabucket_limited_requests_total',
    'Requests refused with 429, by rate limit.',
    { limit: ['token', 'address', 'authentication'] },
  )
  readonly refusedConnections = labelledCounter(
    this.registry,
    'mediabucket_connections_refused_total',
    'Connections refused, by limit.',
    { reason: ['total', 'address'] },
  )
  readonly closedIdleConnections = counter(
    this.registry,
    'mediabucket_idle_connections_closed_total',
    'Idle connections that were closed to make room for new ones at a limit of connections.',
  )
  readonly workerRestarts = counter(
    this.registry,
    'mediabucket_worker_restarts_total',
    'Workers that were started in the place of one that had ended; 0 with one process.',
  )
  readonly slowReaders = counter(
    this.registry,
    'mediabucket_slow_readers_closed_total',
    'Connections closed because their clients read fewer than 2,000 bytes per second.',
  )
  readonly unreadClosed = counter(
    this.registry,
    'mediabucket_unread_responses_closed_total',
    'Connections closed because the responses that clients had not read took too much memory.',
  )
  readonly sentChanges = counter(
    this.registry,
    'mediabucket_feed_changes_sent_total',
    'Changes of items that were sent to readers of feeds.',
  )
  readonly refusedStreams = counter(
    this.registry,
    'mediabucket_feed_streams_refused_total',
    'Streams of changes, and requests that wait for changes, that were refused because their token or address has too many of them.',
  )
  readonly variantSeconds = new Histogram({
    name: 'mediabucket_variant_seconds',
    help: 'Time from the first request for a variant, or the start of its render ahead, until it was rendered or had failed; stored variants are not counted.',
    labelNames: ['variant', 'outcome'],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 5, 20],
    registers: [this.registry],
  })
  readonly #activeUploads = new Gauge({
    name: 'mediabucket_active_uploads',
    help: 'Upload requests in progress: to /api/media, or chunks of resumable uploads.',
    registers: [this.registry],
  })
  readonly lostDownloadEvents = counter(
    this.registry,
    'mediabucket_audit_downloads_lost_total',
    'Downloads that were not recorded in the audit log, because the disk is nearly full, or events were added faster than they could be stored.',
  )
  readonly webhookDeliveries = labelledCounter(
    this.registry,
    'mediabucket_webhook_deliveries_total',
    'Attempts to deliver changes to webhooks, by outcome; without tests and repetitions that people have asked for.',
    { outcome: ['delivered', 'failed'] },
  )
  readonly urlUploads = labelledCounter(
    this.registry,
    'mediabucket_url_uploads_total',
    'Uploads from a URL, by outcome; without repetitions of stored ones.',
    { outcome: urlUploadOutcomes },
  )
  readonly scans: ScanMetrics
  readonly storage: StorageMetrics

  /** `textOfWorkers` returns the metrics of all workers; null where there is one process. */
  constructor(textOfWorkers: (() => Promise<string>) | null = null) {
    this.#textOfWorkers = textOfWorkers
    const buildInfo = new Gauge({
      name: 'mediabucket_build_info',
      help: 'Always 1; the labels are the versions of Mediabucket and Node.js.',
      labelNames: ['version', 'node'],
      aggregator: 'first',
      registers: [this.registry],
    })
    buildInfo.set({ version, node: process.versions.node }, 1)
    this.scans = new ScanMetrics(this.registry)
    this.storage = new StorageMetrics(this.registry)
  }

  /** The response of `/metrics`. */
  text(): Promise<string> {
    if (this.#textOfWorkers) return this.#textOfWorkers()
    this.#collectDefaults()
    return this.registry.metrics()
  }

  /** The values, for the sums over all workers. */
  snapshot(): ReturnType<Registry['getMetricsAsJSON']> {
    this.#collectDefaults()
    return this.registry.getMetricsAsJSON()
  }

  /** From the first scrape on: a service that nobody scrapes measures nothing. */
  #collectDefaults(): void {
    if (this.#hasDefaults) return
    this.#hasDefaults = true
    addProcessMetrics(this.registry)
  }

  /** One observer for each method and route. */
  responseObserver(method: string, route: string): ResponseObserver {
    let byMethod = this.#observers.get(route)
    if (byMethod === undefined) {
      byMethod = new Map()
      this.#observers.set(route, byMethod)
    }
    let observer = byMethod.get(method)
    if (observer === undefined) {
      observer = new ResponseObserver(this.#duration, method, route)
      byMethod.set(method, observer)
    }
    return observer
  }

  /** Counts an upload request until its response has ended. */
  countActiveUpload(response: ServerResponse): void {
    this.#activeUploads.inc()
    response.once('close', () => this.#activeUploads.dec())
  }

  /** `open` returns how many connections are open. */
  watchConnections(open: () => number): void {
    watchGauge(this.registry, 'mediabucket_connections_open', 'Open connections of clients.', open)
  }

  /** `unread` returns the bytes of responses that clients have not read. */
  watchUnreadBytes(unread: () => number): void {
    watchGauge(
      this.registry,
      'mediabucket_unread_response_bytes',
      'Bytes of responses in memory that clients have not read, without those of caches.',
      unread,
    )
  }

  /** `open` returns how many streams and waiting requests there are. */
  watchFeed(open: () => number): void {
    watchGauge(
      this.registry,
      'mediabucket_feed_streams_open',
      'Open streams of changes, and requests that wait for changes.',
      open,
    )
  }

  /** `dropped` returns how many lines were dropped so far. */
  watchLog(dropped: () => number): void {
    new Counter({
      name: 'mediabucket_log_lines_dropped_total',
      help: 'Lines of the log that were dropped, because what reads or stores the log was too slow or failed.',
      registers: [this.registry],
      collect() {
        this.reset()
        this.inc(dropped())
      },
    })
  }

  /** `bytes` returns the size of the cache. */
  watchPageLinkCache(bytes: () => number): void {
    watchGauge(
      this.registry,
      'mediabucket_page_link_cache_bytes',
      'Size of the cache of the page links that all pages share.',
      bytes,
    )
  }

  /** `read` returns the hits and misses so far, and the size in bytes. */
  watchBytesCache(
    read: () => { readonly hits: number; readonly misses: number; readonly size: number },
  ): void {
    new Counter({
      name: 'mediabucket_bytes_cache_requests_total',
      help: 'Requests for files and thumbnails that the cache of bytes may hold, by result.',
      labelNames: ['result'],
      registers: [this.registry],
      collect() {
        const { hits, misses } = read()
        this.reset()
        this.inc({ result: 'hit' }, hits)
        this.inc({ result: 'miss' }, misses)
      },
    })
    watchGauge(
      this.registry,
      'mediabucket_bytes_cache_bytes',
      'Size of the cache of bytes.',
      () => read().size,
    )
  }

  /** `length` returns how many items wait. */
  watchRenderAhead(length: () => number): void {
    watchGauge(
      this.registry,
      'mediabucket_render_ahead_items',
      'New items whose thumbnails wait to be rendered ahead of their first requests.',
      length,
    )
  }

  /** `isReadOnly` is whether the operator has switched off changes. */
  watchReadOnly(isReadOnly: () => boolean): void {
    watchGauge(
      this.registry,
      'mediabucket_read_only',
      'Whether requests that change something are refused (MEDIABUCKET_READ_ONLY): 1 or 0.',
      () => (isReadOnly() ? 1 : 0),
      'max',
    )
  }

  /** `check` returns whether the service can serve data and store uploads now. */
  watchReadiness(check: () => Promise<{ readonly reads: boolean; readonly writes: boolean }>): void {
    new Gauge({
      name: 'mediabucket_ready',
      help: 'Whether the service can serve its data (reads) and store uploads (writes) now: 1 or 0.',
      labelNames: ['for'],
      aggregator: 'first',
      registers: [this.registry],
      async collect() {
        const { reads, writes } = await check().catch(() => ({ reads: false, writes: false }))
        this.set({ for: 'reads' }, reads ? 1 : 0)
        this.set({ for: 'writes' }, writes ? 1 : 0)
      },
    })
  }
}

/** Observes the responses of one method and route. The labels of a status are resolved once, at its first response. */
class ResponseObserver {
  readonly #duration: PrelabelledHistogram
  readonly #method: string
  readonly #route: string
  readonly #byStatus = new Map<number | null, Series>()

  constructor(duration: PrelabelledHistogram, method: string, route: string) {
    this.#duration = duration
    this.#method = method
    this.#route = route
  }

  /** `status` is null where the connection ended before the response began. */
  observe(status: number | null, seconds: number): void {
    let series = this.#byStatus.get(status)
    if (series === undefined) {
      const labels = { method: this.#method, route: this.#route, status: status ?? 'none' }
      series = this.#duration.seriesOf(labels)
      this.#byStatus.set(status, series)
    }
    series.observe(seconds)
  }
}

/** Adds a counter. */
function counter(registry: Registry, name: string, help: string): Counter {
  return new Counter({ name, help, registers: [registry] })
}

/** Adds a counter with one label, which begins with 0 for each of its values. */
function labelledCounter<Label extends string>(
  registry: Registry,
  name: string,
  help: string,
  label: Readonly<Record<Label, readonly string[]>>,
): Counter<Label> {
  const labelNames = Object.keys(label) as Label[]
  const added = new Counter<Label>({ name, help, labelNames, registers: [registry] })
  for (const key of labelNames) for (const value of label[key]) added.labels(value).inc(0)
  return added
}

/** Adds a gauge that each scrape reads. */
function watchGauge(
  registry: Registry,
  name: string,
  help: string,
  read: () => number | Promise<number>,
  aggregator: Aggregator = 'sum',
): void {
  new Gauge({
    name,
    help,
    aggregator,
    registers: [registry],
    async collect() {
      this.set(await read())
    },
  })
}

/** The sources of the gauges, read at each scrape. */
interface Sources {
  readonly statistics: () => Promise<CatalogStatistics>
  /** The size of the file system of the data directory. Bytes. */
  readonly space: () => Promise<{ readonly free: number; readonly total: number }>
}

const latencies = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30]

/** The metrics of the data directory (docs/operations/monitoring.md). */
export class StorageMetrics {
  readonly #registry: Registry
  readonly #commitSeconds: Histogram
  readonly #syncSeconds: Histogram
  readonly #errors: Counter<'cause'>

  constructor(registry: Registry) {
    this.#registry = registry
    this.#commitSeconds = new Histogram({
      name: 'mediabucket_commit_seconds',
      help: 'Time of a write transaction of the catalog, its sync included.',
      buckets: latencies,
      registers: [registry],
    })
    this.#syncSeconds = new Histogram({
      name: 'mediabucket_fsync_seconds',
      help: 'Time of an fsync of a new file or of a directory.',
      buckets: latencies,
      registers: [registry],
    })
    this.#errors = labelledCounter(
      registry,
      'mediabucket_storage_errors_total',
      'Requests that failed because of the disk, the database or the store, by cause.',
      { cause: storageCauses },
    )
  }

  observeCommit(seconds: number): void {
    this.#commitSeconds.observe(seconds)
  }

  observeSync(seconds: number): void {
    this.#syncSeconds.observe(seconds)
  }

  /** Counts an error of the storage; ignores all others. */
  countError(error: unknown): void {
    const cause = storageCauseOf(error)
    if (cause) this.#errors.inc({ cause })
  }

  /**
   * Adds the gauges. All workers read the same value, so the metrics of several workers contain the first one, except of those with
   * another aggregator. A failed read must not hide the other metrics.
   */
  watch({ statistics, space }: Sources): void {
    const ofScrape = new ScrapeStatistics(statistics)
    for (const [name, help, of, aggregator = 'first'] of catalogGauges) {
      const read = async () => of(await ofScrape.read())
      watchGauge(this.#registry, name, help, orNotANumber(read), aggregator)
    }
    watchGauge(
      this.#registry,
      'mediabucket_data_free_bytes',
      'Free bytes on the file system of the data directory.',
      orNotANumber(async () => (await space()).free),
      'first',
    )
    watchGauge(
      this.#registry,
      'mediabucket_data_size_bytes',
      'Size of the file system of the data directory.',
      orNotANumber(async () => (await space()).total),
      'first',
    )
  }
}

const orNotANumber = (read: () => Promise<number>) => () => read().catch(() => Number.NaN)
