import { Counter, Histogram, type Registry } from 'prom-client'

/** How a scan of an uploaded file ends. */
const scanOutcomes = ['clean', 'refused', 'too-large', 'busy', 'failed'] as const
export type ScanOutcome = (typeof scanOutcomes)[number]

/** The metrics of scans of uploads (docs/interface.md SC6). */
export class ScanMetrics {
  readonly #scans: Counter<'outcome'>
  readonly #seconds: Histogram

  constructor(registry: Registry) {
    this.#scans = new Counter({
      name: 'mediabucket_scans_total',
      help: 'Scans of uploaded files, by outcome.',
      labelNames: ['outcome'],
      registers: [registry],
    })
    for (const outcome of scanOutcomes) this.#scans.labels(outcome).inc(0)
    this.#seconds = new Histogram({
      name: 'mediabucket_scan_seconds',
      help: 'Time that an upload waited for the scan of a file.',
      buckets: [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30],
      registers: [registry],
    })
  }

  observe(outcome: ScanOutcome, seconds: number): void {
    this.#scans.labels(outcome).inc()
    this.#seconds.observe(seconds)
  }
}
