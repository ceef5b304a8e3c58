import { AnswerError, ConnectionError, TimeoutError } from './errors.ts'

/**
 * How calls are retried. A call is retried after a failed connection, a timeout and the statuses 408, 429, 502, 503 and
 * 504, if it can be sent twice without a different result.
 */
export interface RetryOptions {
  /** The maximum number of attempts, including the first; 1 disables retries. Default: 4. */
  readonly attempts?: number | undefined
  /** The maximum delay before the first retry in milliseconds; the minimum is half of it. It doubles with each retry. Default: 500. */
  readonly delay?: number | undefined
  /** The maximum delay between attempts in milliseconds. A longer `Retry-After` is not retried. Default: 30 000. */
  readonly maxDelay?: number | undefined
  /** Called before each delay, with the error of the failed attempt and the delay in milliseconds. */
  readonly onRetry?: ((error: unknown, delay: number) => void) | undefined
}

/** The retry options with their defaults. */
export interface RetryPolicy {
  readonly attempts: number
  readonly delay: number
  readonly maxDelay: number
  readonly onRetry: NonNullable<RetryOptions['onRetry']>
}

const transient = new Set([408, 429, 502, 503, 504])

/** Whether the same request may succeed later. */
export const isTransient = (error: unknown): boolean =>
  error instanceof AnswerError
    ? transient.has(error.status)
    : error instanceof ConnectionError || error instanceof TimeoutError

/** Adds the defaults. Throws a `TypeError` for invalid numbers. */
export function retryPolicy({
  attempts = 4,
  delay = 500,
  maxDelay = 30_000,
  onRetry = () => {},
}: RetryOptions = {}): RetryPolicy {
  if (!Number.isInteger(attempts) || attempts < 1)
    throw new TypeError('retry.attempts must be a whole number from 1')
  if (!(delay >= 0)) throw new TypeError('retry.delay must be milliseconds from 0')
  if (!(maxDelay >= 0 && maxDelay < 2 ** 31))
    throw new TypeError('retry.maxDelay must be milliseconds from 0 to 2^31 - 1')
  return { attempts, delay, maxDelay, onRetry }
}

/**
 * The delay in milliseconds before the attempt after `attempt` (from 1); null if there is none. `alsoTransient` are
 * statuses that are transient for this call, in addition to the general ones.
 */
export function delayAfter(
  error: unknown,
  attempt: number,
  policy: RetryPolicy,
  alsoTransient?: ReadonlySet<number>,
): number | null {
  if (attempt >= policy.attempts) return null
  const requested = error instanceof AnswerError ? error.retryAfter : null
  const repeatable =
    isTransient(error) || (error instanceof AnswerError && alsoTransient?.has(error.status) === true)
  if (!repeatable || (requested ?? 0) > policy.maxDelay) return null
  // Half of the delay is random, so that clients that failed at the same time do not retry at the same time.
  const jitter = () => (1 + Math.random()) / 2
  const backOff = policy.delay * 2 ** (attempt - 1) * jitter()
  return Math.min(policy.maxDelay, requested === null ? backOff : requested + policy.delay * jitter())
}

/** The milliseconds of `Retry-After` (RFC 9110, section 10.2.3: seconds or a date); null if there is none. */
export function readRetryAfter(headers: Headers): number | null {
  const value = headers.get('retry-after')?.trim() ?? ''
  if (/^\d+$/.test(value)) return Number(value) * 1000
  const until = dateOf(value)
  if (until === null) return null
  // Relative to the service's clock, if the response has a Date.
  return Math.max(0, until - (dateOf(headers.get('date') ?? '') ?? Date.now()))
}

/** HTTP dates are in GMT, also without the suffix. The pattern is needed because Date.parse accepts "1.5" as a day of 2001. */
function dateOf(value: string): number | null {
  if (!/^[A-Z][a-z]{2,8}[, ]/.test(value)) return null
  const time = Date.parse(value.endsWith('GMT') ? value : `${value} GMT`)
  return Number.isNaN(time) ? null : time
}

/** Waits. An aborted signal rejects it at once with the signal's reason. */
export function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, milliseconds)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
