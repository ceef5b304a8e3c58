import { Histogram, type HistogramConfiguration } from 'prom-client'

type Labels = Readonly<Record<string, string | number>>

/** The values of one combination of labels: the count of each bucket, the last of which has no bound, and the sum. */
export class Series {
  readonly labels: Labels
  readonly counts: number[]
  readonly #bounds: readonly number[]
  sum = 0

  constructor(labels: Labels, bounds: readonly number[]) {
    this.labels = labels
    this.counts = [0, ...bounds.map(() => 0)]
    this.#bounds = bounds
  }

  observe(value: number): void {
    const bounds = this.#bounds
    const counts = this.counts
    let bucket = 0
    while (value > (bounds[bucket] ?? Number.POSITIVE_INFINITY)) bucket += 1
    counts[bucket] = (counts[bucket] ?? 0) + 1
    this.sum += value
  }
}

/**
 * A histogram whose labels are resolved once, by `seriesOf`, instead of at each observation. prom-client validates labels
 * each time, which takes as long as the SQL of a listing; here an observation is two additions.
 */
export class PrelabelledHistogram extends Histogram<string> {
  readonly #configuration: HistogramConfiguration<string>
  readonly #bounds: readonly number[]
  readonly #series: Series[] = []

  constructor(configuration: HistogramConfiguration<string> & { readonly buckets: number[] }) {
    super(configuration)
    this.#configuration = configuration
    this.#bounds = configuration.buckets
  }

  /** Call it once for each combination of labels. */
  seriesOf(labels: Labels): Series {
    const series = new Series(labels, this.#bounds)
    this.#series.push(series)
    return series
  }

  /** The registry of prom-client calls this to read the samples. */
  async getForPromString() {
    const { name, help } = this.#configuration
    return {
      name,
      help,
      type: 'histogram',
      aggregator: 'sum',
      values: this.#series.flatMap((series) => this.#samples(series)),
    }
  }

  /** The cumulative counts and the sum. */
  #samples({ labels, counts, sum }: Series) {
    const sample = (suffix: string, value: number, extraLabels: Labels = {}) => ({
      metricName: this.#configuration.name + suffix,
      labels: extraLabels,
      sharedLabels: labels,
      value,
    })
    let count = 0
    const buckets = counts.map((more, bucket) => {
      count += more
      return sample('_bucket', count, { le: this.#bounds[bucket] ?? '+Inf' })
    })
    return [...buckets, sample('_sum', sum), sample('_count', count)]
  }
}
