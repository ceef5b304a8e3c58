import { AggregatorRegistry, type Registry } from 'prom-client'
import { resolvesWithin } from '../../core/resolves-within.ts'
import type { MetricsSnapshot } from './messages.ts'

/** The metrics of all processes of the service. */
export interface ServiceMetrics {
  /** Reads the metrics of the workers, and adds them to those of the parent and of the workers that have ended. */
  text(): Promise<string>
  addWorker(worker: MetricsSource): void
  /** Keeps the counters of a worker that has ended, so that no sum decreases. */
  removeWorker(worker: MetricsSource): void
}

export interface MetricsSource {
  snapshotMetrics(): Promise<MetricsSnapshot>
}

/** Milliseconds to wait for a worker. The last snapshot of a slower worker is used. */
const readTimeout = 1_000

const counting: ReadonlySet<unknown> = new Set(['counter', 'histogram'])

export function createServiceMetrics(own: Registry): ServiceMetrics {
  /** The last snapshot of each worker. Counts after it are lost when the worker is killed. */
  const snapshots = new Map<MetricsSource, MetricsSnapshot>()
  /** The counts of ended workers. */
  let ended: readonly MetricsSnapshot[] = []

  async function refresh(worker: MetricsSource): Promise<void> {
    const snapshot = worker.snapshotMetrics()
    if (!(await resolvesWithin(snapshot, readTimeout))) return
    const metrics = await snapshot
    // It may have ended since the request was sent.
    if (snapshots.has(worker)) snapshots.set(worker, metrics)
  }

  async function mergeEnded(): Promise<void> {
    const before = ended
    if (before.length < 2) return
    const merged = await AggregatorRegistry.aggregate([...before]).getMetricsAsJSON()
    // Since the requests were sent, workers may have ended, and another call may have merged the same ones.
    if (before.every((one, at) => ended[at] === one)) ended = [merged, ...ended.slice(before.length)]
  }

  return {
    async text() {
      await Promise.all([...snapshots.keys()].map(refresh))
      await mergeEnded()
      const parent = (await own.getMetricsAsJSON()).filter(isOfParent).map(firstIfOmitted)
      return AggregatorRegistry.aggregate([parent, ...snapshots.values(), ...ended]).metrics()
    },
    addWorker: (worker) => void snapshots.set(worker, []),
    removeWorker(worker) {
      const last = (snapshots.get(worker) ?? []).filter(({ type }) => counting.has(String(type)))
      snapshots.delete(worker)
      ended = [...ended, last]
    },
  }
}

/** Leaves out the event loop and the heap of the parent. The parent handles no requests, so they would distort the metrics of the workers. */
const isOfParent = ({ name }: MetricsSnapshot[number]): boolean => !name.startsWith('nodejs_')

/** The start time cannot be added up, so the start time of the parent is used for the service. */
const firstIfOmitted = (metric: MetricsSnapshot[number]): MetricsSnapshot[number] =>
  metric.aggregator === 'omit' ? { ...metric, aggregator: 'first' } : metric
