import { type Load, type Measure, measure, median, type Subject } from './subject.ts'

/** How long and how large: the short form proves that the bench runs, and measures nothing. */
export interface Extent {
  readonly rounds: number
  readonly seconds: number
  /** Items of the large bucket. */
  readonly large: number
  /** Buckets with a token each. */
  readonly buckets: number
}

/** One measurement: a subject, a path, a load. */
export interface Case {
  readonly id: string
  readonly subject: Subject
  readonly path: string
  readonly load: Omit<Load, 'seconds'>
  /** Whether responses other than 2xx and 3xx are expected. */
  readonly refusals?: boolean
}

/** A case's medians. */
export interface Row {
  readonly id: string
  readonly measure: Measure
}

/** Measures each case with wrk for `extent.seconds` in each round, and returns the medians. */
export const measureInRounds = (
  cases: readonly Case[],
  extent: Extent,
  report: (text: string) => void,
): Promise<Row[]> =>
  runInTurn(
    cases.map(({ id, subject, path, load, refusals }) => ({
      id,
      run: () => measure(subject, path, { ...load, seconds: extent.seconds }, refusals),
    })),
    extent.rounds,
    report,
  )

/** Measures the cases in turn, round after round, so that changes on the machine affect all of them. */
export async function runInTurn(
  cases: readonly { readonly id: string; readonly run: () => Promise<Measure> }[],
  count: number,
  report: (text: string) => void,
): Promise<Row[]> {
  const taken = cases.map((): Measure[] => [])
  // The first round is a warm-up and is not counted, unless it is the only one.
  const first = count > 1 ? 0 : 1
  for (let round = first; round <= count; round += 1) {
    for (const [index, { id, run }] of cases.entries()) {
      const result = await run()
      if (round > 0) taken[index]?.push(result)
      report(
        `round ${round}: ${id}: ${result.perSecond.toFixed(result.perSecond < 10 ? 2 : 0)}/s, ${(result.cpuPerRequest * 1e6).toFixed(1)} µs of CPU`,
      )
    }
  }
  return cases.map(({ id }, index) => ({ id, measure: middle(taken[index] ?? []) }))
}

const middle = (all: readonly Measure[]): Measure => ({
  perSecond: median(all.map((one) => one.perSecond)),
  bytesPerSecond: median(all.map((one) => one.bytesPerSecond)),
  cpuPerRequest: median(all.map((one) => one.cpuPerRequest)),
  p50: median(all.map((one) => one.p50)),
  p99: median(all.map((one) => one.p99)),
})
