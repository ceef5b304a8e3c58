import type { ServerResponse } from 'node:http'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { version } from '../../core/version.ts'
import { PrelabelledHistogram } from './prelabelled-histogram.ts'
import { createStorageMetrics } from './storage-metrics.ts'

/** `status` is null where the connection ended before the response began. */
type ResponseObserver = (status: number | null, seconds: number) => void

/**
 * The metrics of `/metrics` (docs/interface.md O2); one set for each process, without the global registry. With several
 * workers, their metrics are added, except where `aggregator` is set.
 */
export function createMetrics() {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  // Gauges, whose names must not end in `_total`. They are the sums of gauges that remain.
  for (const what of ['handles', 'requests', 'resources'])
    registry.removeSingleMetric(`nodejs_active_${what}_total`)
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
  const observers = new Map<string, ResponseObserver>()
  /** One observer for each method and route. */
  function responseObserver(method: string, route: string): ResponseObserver {
    const key = `${method} ${route}`
    const known = observers.get(key)
    if (known) return known
    const byStatus = new Map<number | null, (seconds: number) => void>()
    const observe: ResponseObserver = (status, seconds) => {
      let observeStatus = byStatus.get(status)
      if (!observeStatus) {
        observeStatus = duration.observer({ method, route, status: status ?? 'none' })
        byStatus.set(status, observeStatus)
      }
      observeStatus(seconds)
    }
    observers.set(key, observe)
    return observe
  }

  return {
    registry,
    /** The response of `/metrics`. */
    text: () => registry.metrics(),
    responseObserver,
    uploadedBytes,
    uploadedItems,
    deletedItems,
    limitedRequests,
    refusedConnections,
    countConnections,
    slowReaders,
    workerRestarts,
    lostDownloadEvents,
    variantSeconds,
    countActiveUpload,
    storage,
    watchPageLinkCache,
    watchBytesCache,
    watchRenderAhead,
  }
}

export type Metrics = ReturnType<typeof createMetrics>
