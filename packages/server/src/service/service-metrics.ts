import { AggregatorRegistry } from 'prom-client'
import { resolvesWithin } from '../core/tasks.ts'
import type { MetricsSnapshot } from './worker-messages.ts'

/** A worker whose metrics are added. */
export interface MetricsSource {
  snapshotMetrics(): Promise<MetricsSnapshot>
}

/** Milliseconds to wait for a worker. The last snapshot of a slower worker is used, and its new one at the next scrape. */
const readTimeout = 1_000

const counting: ReadonlySet<unknown> = new Set(['counter', 'histogram'])

/** The metrics of all processes of the service. */
export class ServiceMetrics {
  readonly #own: () => Promise<MetricsSnapshot>
  /** The last snapshot of each worker. Counts after it are lost when the worker is killed. */
  readonly #snapshots = new Map<MetricsSource, MetricsSnapshot>()
  /** The counts of ended workers. */
  #ended: readonly MetricsSnapshot[] = []

  /** `own` returns the metrics of the parent. */
  constructor(own: () => Promise<MetricsSnapshot>) {
    this.#own = own
  }

  /** Reads the metrics of the workers, and adds them to those of the parent and of the workers that have ended. */
  async text(): Promise<string> {
    await Promise.all([...this.#snapshots.keys()].map((worker) => this.#refresh(worker)))
    await this.#mergeEnded()
    const parent = (await this.#own()).filter(isOfParent).map(firstIfOmitted)
    return AggregatorRegistry.aggregate([parent, ...this.#snapshots.values(), ...this.#ended]).metrics()
  }

  addWorker(worker: MetricsSource): void {
    this.#snapshots.set(worker, [])
  }

  /** Keeps the counters of a worker that has ended, so that no sum decreases. */
  removeWorker(worker: MetricsSource): void {
    const last = (this.#snapshots.get(worker) ?? []).filter(({ type }) => counting.has(String(type)))
    this.#snapshots.delete(worker)
    this.#ended = [...this.#ended, last]
  }

  async #refresh(worker: MetricsSource): Promise<void> {
    const stored = worker.snapshotMetrics().then((metrics) => {
      // It may have ended since the request was sent.
      if (this.#snapshots.has(worker)) this.#snapshots.set(worker, metrics)
    })
    await resolvesWithin(stored, readTimeout)
  }

  async #mergeEnded(): Promise<void> {
    const before = this.#ended
    if (before.length < 2) return
    const merged = await AggregatorRegistry.aggregate([...before]).getMetricsAsJSON()
    // Since the requests were sent, workers may have ended, and another call may have merged the same ones.
    if (before.every((one, at) => this.#ended[at] === one))
      this.#ended = [merged, ...this.#ended.slice(before.length)]
  }
}

/** Leaves out the event loop and the heap of the parent. The parent handles no requests, so they would distort the metrics of the workers. */
const isOfParent = ({ name }: MetricsSnapshot[number]): boolean => !name.startsWith('nodejs_')

/** The start time cannot be added up, so the start time of the parent is used for the service. */
const firstIfOmitted = (metric: MetricsSnapshot[number]): MetricsSnapshot[number] =>
  metric.aggregator === 'omit' ? { ...metric, aggregator: 'first' } : metric
