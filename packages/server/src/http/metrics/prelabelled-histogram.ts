import { Histogram, type HistogramConfiguration } from 'prom-client'

type Labels = Readonly<Record<string, string | number>>

/** One combination of labels: how many values fell into each bucket, the last of which has no bound, and their sum. */
interface Series {
  readonly labels: Labels
  readonly counts: number[]
  sum: number
}

/**
 * A histogram whose observers know their labels. The library's own looks them up and checks them at each observation,
 * which takes a listing as long as its SQL; here an observation is two additions.
 */
export class PrelabelledHistogram extends Histogram<string> {
  readonly #about: HistogramConfiguration<string>
  readonly #bounds: readonly number[]
  readonly #all: Series[] = []

  constructor(about: HistogramConfiguration<string> & { readonly buckets: number[] }) {
    super(about)
    this.#about = about
    this.#bounds = about.buckets
  }

  /** To be asked for once for each combination of labels. */
  observer(labels: Labels): (value: number) => void {
    const bounds = this.#bounds
    const series: Series = { labels, counts: [0, ...bounds.map(() => 0)], sum: 0 }
    this.#all.push(series)
    return (value) => {
      let bucket = 0
      while (value > (bounds[bucket] ?? Number.POSITIVE_INFINITY)) bucket += 1
      series.counts[bucket] = (series.counts[bucket] ?? 0) + 1
      series.sum += value
    }
  }

  /** What the library's registry and its `get` take the samples from. */
  async getForPromString() {
    const { name, help } = this.#about
    return {
      name,
      help,
      type: 'histogram',
      aggregator: 'sum',
      values: this.#all.flatMap((series) => this.#samples(series)),
    }
  }

  /** The cumulative counts and the sum. */
  #samples({ labels, counts, sum }: Series) {
    const sample = (suffix: string, value: number, own: Labels = {}) => ({
      metricName: this.#about.name + suffix,
      labels: own,
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
