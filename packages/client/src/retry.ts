import { AnswerError } from './errors/answer-error.ts'
import { ConnectionError } from './errors/connection-error.ts'
import { TimeoutError } from './errors/timeout-error.ts'

/**
 * How calls are repeated that may be. Repeated are failed connections, silence and the statuses 408, 429, 502, 503
 * and 504; and only calls that do no harm twice.
 */
export interface RetryOptions {
  /** Tries in all, the first one included; 1 never repeats. Default: 4. */
  readonly attempts?: number | undefined
  /** Milliseconds before the first repeat at most, half of it at least. Doubles with every repeat. Default: 500. */
  readonly delay?: number | undefined
  /** Milliseconds between two tries at most. A service that asks for more gets no repeat. Default: 30 000. */
  readonly maxDelay?: number | undefined
}

/** How calls are repeated, complete. */
export interface RetryPolicy {
  readonly attempts: number
  readonly delay: number
  readonly maxDelay: number
}

const transient = new Set([408, 429, 502, 503, 504])

/** The options with their defaults; throws a `TypeError` for numbers that make no sense. */
export function retryPolicy({
  attempts = 4,
  delay = 500,
  maxDelay = 30_000,
}: RetryOptions = {}): RetryPolicy {
  if (!Number.isInteger(attempts) || attempts < 1)
    throw new TypeError('retry.attempts must be a whole number from 1')
  if (!(delay >= 0)) throw new TypeError('retry.delay must be milliseconds from 0')
  if (!(maxDelay >= 0 && maxDelay < 2 ** 31))
    throw new TypeError('retry.maxDelay must be milliseconds from 0 to 2^31 - 1')
  return { attempts, delay, maxDelay }
}

/**
 * Milliseconds to wait before the try after `attempt` (from 1), null when there shall be none. `also` are statuses that
 * pass for this call, beside those that do for every one.
 */
export function delayAfter(
  error: unknown,
  attempt: number,
  policy: RetryPolicy,
  also?: ReadonlySet<number>,
): number | null {
  if (attempt >= policy.attempts) return null
  const asked = error instanceof AnswerError ? error.retryAfter : null
  const repeatable =
    error instanceof AnswerError
      ? transient.has(error.status) || also?.has(error.status) === true
      : error instanceof ConnectionError || error instanceof TimeoutError
  if (!repeatable || (asked ?? 0) > policy.maxDelay) return null
  // Half of the wait is random, so that clients that failed together do not come back together.
  const jitter = () => (1 + Math.random()) / 2
  const backOff = policy.delay * 2 ** (attempt - 1) * jitter()
  return Math.min(policy.maxDelay, asked === null ? backOff : asked + policy.delay * jitter())
}

/** Milliseconds that `Retry-After` asks for (RFC 9110, section 10.2.3: seconds or a date), null when it asks nothing. */
export function readRetryAfter(headers: Headers): number | null {
  const value = headers.get('retry-after')?.trim() ?? ''
  if (/^\d+$/.test(value)) return Number(value) * 1000
  const until = dateOf(value)
  if (until === null) return null
  // The service's own clock, where it shows, tells how far off the date is.
  return Math.max(0, until - (dateOf(headers.get('date') ?? '') ?? Date.now()))
}

/** HTTP dates are in GMT even where they do not say so. Date.parse alone would take "1.5" for a day of the year 2001. */
function dateOf(value: string): number | null {
  if (!/^[A-Z][a-z]{2,8}[, ]/.test(value)) return null
  const time = Date.parse(value.endsWith('GMT') ? value : `${value} GMT`)
  return Number.isNaN(time) ? null : time
}
