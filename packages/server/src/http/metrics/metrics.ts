import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { version } from '../../core/version.ts'
import { PrelabelledHistogram } from './prelabelled-histogram.ts'
import { createStorageMetrics } from './storage-metrics.ts'

/** `status` is null where the connection ended before an answer began. */
type ResponseObserver = (status: number | null, seconds: number) => void

/** What `/metrics` tells (docs/interface.md O2); one set per service, no global registry. */
export function createMetrics() {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const duration = new PrelabelledHistogram({
    name: 'mediabucket_http_request_duration_seconds',
    help: 'Time from the end of a request’s headers to the end of its answer.',
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
    help: 'Requests answered 429, by the rate limit that they exceeded.',
    labelNames: ['limit'],
    registers: [registry],
  })
  for (const limit of ['token', 'address', 'authentication']) limitedRequests.inc({ limit }, 0)
  const refusedConnections = new Counter({
    name: 'mediabucket_connections_refused_total',
    help: 'Connections refused, by the limit that was reached.',
    labelNames: ['reason'],
    registers: [registry],
  })
  for (const reason of ['total', 'address']) refusedConnections.inc({ reason }, 0)
  const slowReaders = new Counter({
    name: 'mediabucket_slow_readers_closed_total',
    help: 'Connections closed because their clients read more slowly than MEDIABUCKET_MIN_SEND_RATE.',
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
    help: 'Time from the first request for a variant until it was made, or was known not to be; what stood already is not counted.',
    labelNames: ['variant', 'outcome'],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 5, 20],
    registers: [registry],
  })
  const activeUploads = new Gauge({
    name: 'mediabucket_active_uploads',
    help: 'Requests under way that upload: to /api/media, or chunks of resumable uploads.',
    registers: [registry],
  })
  const buildInfo = new Gauge({
    name: 'mediabucket_build_info',
    help: 'Always 1; the labels are the versions of Mediabucket and Node.js.',
    labelNames: ['version', 'node'],
    registers: [registry],
  })
  buildInfo.set({ version, node: process.versions.node }, 1)
  const storage = createStorageMetrics(registry)

  function watchPageLinkCache(bytesHeld: () => number): void {
    new Gauge({
      name: 'mediabucket_link_ribbon_bytes',
      help: 'Bytes held of the links that all pages share.',
      registers: [registry],
      collect() {
        this.set(bytesHeld())
      },
    })
  }
  const observers = new Map<string, ResponseObserver>()
  /** One for each method and route. */
  function responseObserver(method: string, route: string): ResponseObserver {
    const key = `${method} ${route}`
    const known = observers.get(key)
    if (known) return known
    const byStatus = new Map<number | null, (seconds: number) => void>()
    const observe: ResponseObserver = (status, seconds) => {
      let one = byStatus.get(status)
      if (!one) {
        one = duration.observer({ method, route, status: status ?? 'none' })
        byStatus.set(status, one)
      }
      one(seconds)
    }
    observers.set(key, observe)
    return observe
  }

  return {
    registry,
    responseObserver,
    uploadedBytes,
    uploadedItems,
    deletedItems,
    limitedRequests,
    refusedConnections,
    countConnections,
    slowReaders,
    variantSeconds,
    activeUploads,
    storage,
    watchPageLinkCache,
  }
}

export type Metrics = ReturnType<typeof createMetrics>
