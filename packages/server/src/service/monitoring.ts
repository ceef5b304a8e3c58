import type { Logger } from 'pino'
import { Fault } from '../core/faults.ts'
import type { HttpContext } from '../http/context.ts'
import { noStore } from '../http/headers.ts'
import type { Metrics } from '../http/metrics.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { Scanner } from '../uploads/scanner.ts'
import type { FreeSpace } from '../uploads/space.ts'
import * as openapi from './monitoring.openapi.ts'

/** The operations that these routes call. */
interface MonitoringOperations {
  readonly readiness: ReturnType<typeof checkReadinessOperation>
}

interface MonitoringParts {
  readonly http: HttpContext
  readonly operations: MonitoringOperations
}

/** `/healthz`, `/readyz` and `/metrics` (docs/interface.md O1, O2). */
export function monitoringRoutes(http: HttpContext, operations: MonitoringOperations): readonly Route[] {
  const renderMetrics = createMetricsRenderer(http.metrics)
  return [
    route('GET', '/healthz', openapi.live, async () => ({
      status: 200,
      headers: noStore,
      json: { status: 'ok' },
    })),
    route('GET', '/readyz', openapi.ready, (exchange) => reportReadiness({ http, operations }, exchange)),
    route('GET', '/metrics', openapi.metrics, async () => ({
      status: 200,
      headers: { ...noStore, 'content-type': http.metrics.registry.contentType },
      body: await renderMetrics(),
    })),
  ]
}

async function reportReadiness(
  { http: { stopping }, operations }: MonitoringParts,
  { query }: Exchange,
): Promise<Reply> {
  if (stopping.aborted) throw new Fault('shutting-down', 'The service is stopping.')
  const { reads, writes, reasons } = await operations.readiness()
  if (!reads || (!writes && query['writes'] !== undefined))
    throw new Fault(
      'not-ready',
      `The service cannot serve ${reads ? 'uploads' : 'its data'}: ${reasons.join(', ')}.`,
      { members: { reasons } },
    )
  return { status: 200, headers: noStore, json: { status: 'ready', reads, writes, reasons } }
}

/** How long a rendered text is reused. Milliseconds. */
const metricsMaxAge = 1_000

/** Renders at most once a second: it takes milliseconds, and anyone can request it without a token. */
function createMetricsRenderer(metrics: Pick<Metrics, 'text'>): () => Promise<Buffer> {
  let text: Promise<Buffer> | null = null
  let renderedAt = 0
  return () => {
    const now = performance.now()
    if (text === null || now - renderedAt >= metricsMaxAge) {
      renderedAt = now
      text = metrics.text().then(Buffer.from)
    }
    return text
  }
}

/** Why reads or writes are not possible. */
type ReadinessReason =
  | 'catalog-unreadable'
  | 'catalog-unwritable'
  | 'bytes-unavailable'
  | 'bytes-unwritable'
  | 'disk-full'
  | 'scanner-unavailable'
  | 'read-only'

/** Whether reads and writes are possible now (docs/interface.md O1). Deletes also work on a full disk. */
export interface Readiness {
  readonly reads: boolean
  readonly writes: boolean
  readonly reasons: readonly ReadinessReason[]
}

/** Milliseconds after which a catalog that does not respond, or that another process has locked, counts as not usable. */
const checkTimeout = 2_000

/** Milliseconds after which a store of bytes that does not respond counts as unavailable. */
const bytesTimeout = 2_000

/** Milliseconds for a scanner. */
const scannerTimeout = 2_000

const stopsReads: ReadonlySet<ReadinessReason> = new Set(['catalog-unreadable', 'bytes-unavailable'])

export function checkReadinessOperation(parts: {
  readonly catalog: Pick<Catalog, 'checkReads' | 'checkWrites'>
  readonly space: Pick<FreeSpace, 'hasRoom'>
  /** `isReachable` is false while the store does not hold the bytes of the catalog, or cannot be reached. */
  readonly blobs: Pick<BlobStore, 'isReachable' | 'checkWrites'>
  /** Without it, uploads are refused. Null if files are not scanned, or are stored without a scan too. */
  readonly scanner: Pick<Scanner, 'check'> | null
  readonly log: Pick<Logger, 'info' | 'error'>
  /** Whether the operator has switched off changes. */
  readonly isReadOnly: () => boolean
}) {
  const { catalog, space, blobs, scanner, log, isReadOnly } = parts
  const canWriteRows = createWriteCheck(() => catalog.checkWrites())
  const canWriteBytes = createWriteCheck(() => blobs.checkWrites())
  const canScan = scanner && createWriteCheck(() => scanner.check(AbortSignal.timeout(scannerTimeout)))

  const reportReasons = createReasonLog(log)

  return async function checkReadiness(): Promise<Readiness> {
    const failures: unknown[] = []
    const succeeds = (check: Promise<void>) =>
      check.then(
        () => true,
        (error: unknown) => {
          failures.push(error)
          return false
        },
      )
    const canRead = within(checkTimeout, succeeds(catalog.checkReads()))
    const hasBytes = await within(bytesTimeout, blobs.isReachable())
    // A full disk is not written to: the space that is left is for deletions.
    const isFull = hasBytes && !space.hasRoom()
    const rows = isFull || within(checkTimeout, succeeds(canWriteRows()))
    const bytes = isFull || !hasBytes || within(bytesTimeout, succeeds(canWriteBytes()))
    const scans = canScan === null || within(scannerTimeout, succeeds(canScan()))
    const reasons: ReadinessReason[] = []
    if (!(await canRead)) reasons.push('catalog-unreadable')
    if (!(await rows)) reasons.push('catalog-unwritable')
    if (!hasBytes) reasons.push('bytes-unavailable')
    else if (isFull) reasons.push('disk-full')
    else if (!(await bytes)) reasons.push('bytes-unwritable')
    if (!(await scans)) reasons.push('scanner-unavailable')
    if (isReadOnly()) reasons.push('read-only')
    reportReasons(reasons, failures)
    return { reads: !reasons.some((reason) => stopsReads.has(reason)), writes: reasons.length === 0, reasons }
  }
}

/** Returns a function that logs the reasons when they have changed. `failures` are the errors of the checks; one that was too late has none. */
function createReasonLog(log: Pick<Logger, 'info' | 'error'>) {
  let last = ''
  return (reasons: readonly ReadinessReason[], failures: readonly unknown[]): void => {
    const now = reasons.join()
    if (now === last) return
    last = now
    if (reasons.length === 0) log.info('the service is ready again')
    // What the operator has set is no error.
    else if (now === 'read-only') log.info({ reasons }, 'the service is read-only')
    else log.error({ reasons, err: failures[0] }, 'the service is not ready')
  }
}

/**
 * Returns a function that runs the check, and rejects as it does. Concurrent calls share one check, so that checks do not accumulate
 * while the catalog is locked. A success counts for a second, because anyone can call it.
 */
function createWriteCheck(check: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null
  let succeededAt = Number.NEGATIVE_INFINITY

  async function run(): Promise<void> {
    try {
      await check()
      succeededAt = performance.now()
    } finally {
      running = null
    }
  }

  return async () => {
    if (performance.now() - succeededAt < successLifetime) return
    running ??= run()
    await running
  }
}

/** Milliseconds for which a successful write counts. */
const successLifetime = 1_000

async function within(time: number, check: Promise<boolean>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, time, false)
  })
  try {
    return await Promise.race([check, late])
  } finally {
    clearTimeout(timer)
  }
}
