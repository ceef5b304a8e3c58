import type { RequestRate } from '../../core/request-rate.ts'

/** The time at which a key may make all requests of its quota again. Milliseconds of the monotonic clock. */
interface Entry {
  fullAt: number
}

/** A rate limit that counts each key separately. */
export interface RateLimit {
  readonly rate: RequestRate
  /** Returns 0 and counts the request, or returns the milliseconds until the next one is accepted. Refused requests do not count. */
  readonly take: (key: string) => number
  /** Counts requests that another process has accepted. */
  readonly add: (key: string, requests: number) => void
}

/** Keys of one generation. There are two generations, so memory is limited to a few megabytes. */
const keysPerGeneration = 20_000

/**
 * The generic cell rate algorithm: `requests` at once, refilled evenly over `window`. Unused keys are dropped after two
 * generations and start with a full quota again.
 */
export function createRateLimit(
  rate: RequestRate,
  now: () => number = () => performance.now(),
  maxKeys = keysPerGeneration,
): RateLimit {
  const { requests, window } = rate
  const perRequest = window / requests
  let current = new Map<string, Entry>()
  let previous = new Map<string, Entry>()

  function entryOf(key: string, at: number): Entry {
    const known = current.get(key)
    if (known) return known
    const entry = previous.get(key) ?? { fullAt: at }
    if (current.size >= maxKeys) {
      previous = current
      current = new Map()
    }
    current.set(key, entry)
    return entry
  }

  return {
    rate,
    take(key) {
      const at = now()
      const entry = entryOf(key, at)
      const fullAt = Math.max(entry.fullAt, at) + perRequest
      const wait = fullAt - at - window
      // Tolerates rounding errors of less than a thousandth of a millisecond.
      if (wait > 0.001) return wait
      entry.fullAt = fullAt
      return 0
    },
    add(key, requests) {
      const at = now()
      const entry = entryOf(key, at)
      entry.fullAt = Math.max(entry.fullAt, at) + requests * perRequest
    },
  }
}
