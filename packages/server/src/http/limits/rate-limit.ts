import type { RequestRate } from '../../core/request-rate.ts'

/** When the quota of a key is whole again. Milliseconds of the monotonic clock. */
interface Entry {
  wholeAt: number
}

/** One limit, counted for each key on its own. */
export interface RateLimit {
  readonly rate: RequestRate
  /** Counts a request and returns 0, or returns the milliseconds until the next one is accepted. Refused requests do not count. */
  readonly take: (key: string) => number
}

/** Keys in one generation; two of them exist, so this bounds the memory to a few megabytes. */
const keysPerGeneration = 20_000

/**
 * The generic cell rate algorithm: `requests` at once, refilled evenly over `window`. Keys that are not used are
 * forgotten after two generations, and begin with a whole quota again.
 */
export function createRateLimit(
  rate: RequestRate,
  now: () => number = () => performance.now(),
  keys = keysPerGeneration,
): RateLimit {
  const { requests, window } = rate
  const perRequest = window / requests
  let current = new Map<string, Entry>()
  let previous = new Map<string, Entry>()

  function entryOf(key: string, at: number): Entry {
    const known = current.get(key)
    if (known) return known
    if (current.size >= keys) {
      previous = current
      current = new Map()
    }
    const entry = previous.get(key) ?? { wholeAt: at }
    current.set(key, entry)
    return entry
  }

  return {
    rate,
    take(key) {
      const at = now()
      const entry = entryOf(key, at)
      const wholeAt = Math.max(entry.wholeAt, at) + perRequest
      const wait = wholeAt - at - window
      // Sums of fractions differ from the window by less than a thousandth of a millisecond.
      if (wait > 0.001) return wait
      entry.wholeAt = wholeAt
      return 0
    },
  }
}
