import { AnswerError, ConnectionError, ProblemError, TimeoutError } from '@mediabucket/client'
import { type ReadonlySignal, signal } from '@preact/signals'
import { strings } from '../strings.ts'

/** Whether the server responds. While it does not, a cheap request is repeated until it does. */
export interface Connection {
  readonly lost: ReadonlySignal<boolean>
  /** Runs a request and updates `lost` from its outcome. */
  watch<T>(request: () => Promise<T>): Promise<T>
  /** Reports that a request made elsewhere got no response. */
  reportLoss(): void
  retryNow(): void
  /**
   * Resolves when the server has responded, however long that takes; `onWait` is called if the connection is lost.
   * Wait for this before `import()`: browsers do not retry a module that failed to load.
   */
  untilReached(onWait?: () => void): Promise<void>
  /** Calls the listener each time the connection is restored. */
  onRestored(listener: () => void): void
  close(): void
}

/** Between two tries. Milliseconds. */
const firstDelay = 500
const maxDelay = 2000

/**
 * `probe` is a cheap request; `onUnauthorized` is called when the token is no longer valid, `onBucketGone` when a service token has named a
 * bucket that does not exist.
 */
export function createConnection(
  probe: () => Promise<unknown>,
  onUnauthorized: () => void,
  onBucketGone: () => void = () => undefined,
): Connection {
  const lost = signal(false)
  const listeners = new Set<() => void>()
  let delay = firstDelay
  let timer: ReturnType<typeof setTimeout> | undefined
  let closed = false

  function reportLoss(): void {
    if (closed || lost.value) return
    lost.value = true
    delay = firstDelay
    timer = setTimeout(retry, delay)
  }

  function restore(): void {
    if (!lost.value) return
    lost.value = false
    clearTimeout(timer)
    for (const listener of listeners) listener()
  }

  async function retry(): Promise<void> {
    clearTimeout(timer)
    try {
      await probe()
      restore()
    } catch (error) {
      if (isUnauthorized(error)) return onUnauthorized()
      if (!isUnreachable(error)) return restore()
      if (closed || !lost.value) return
      delay = Math.min(delay * 2, maxDelay)
      timer = setTimeout(retry, delay)
    }
  }

  const retryNow = () => {
    if (!lost.value) return
    delay = firstDelay
    void retry()
  }
  addEventListener('online', retryNow)
  addEventListener('offline', reportLoss)

  async function watch<T>(request: () => Promise<T>): Promise<T> {
    try {
      const result = await request()
      restore()
      return result
    } catch (error) {
      if (isUnreachable(error)) reportLoss()
      if (isUnauthorized(error)) onUnauthorized()
      if (isBucketGone(error)) onBucketGone()
      throw error
    }
  }

  return {
    lost,
    watch,
    reportLoss,
    async untilReached(onWait) {
      if (!lost.value) await watch(probe).catch(() => undefined)
      if (!lost.value) return
      onWait?.()
      await new Promise<void>((resolve) => {
        const once = () => {
          listeners.delete(once)
          resolve()
        }
        listeners.add(once)
      })
    },
    retryNow,
    onRestored: (listener) => void listeners.add(listener),
    close() {
      closed = true
      clearTimeout(timer)
      removeEventListener('online', retryNow)
      removeEventListener('offline', reportLoss)
    },
  }
}

/** Whether the server did not respond, or only a proxy in front of it did: a retry may succeed. */
export const isUnreachable = (error: unknown): boolean =>
  error instanceof ConnectionError ||
  error instanceof TimeoutError ||
  (error instanceof AnswerError && [502, 503, 504].includes(error.status))

export const isUnauthorized = (error: unknown): boolean =>
  error instanceof AnswerError && error.status === 401

export const isNotFound = (error: unknown): boolean => error instanceof AnswerError && error.status === 404

/** Whether no bucket has the name that a request with a service token has (docs/interface.md ST2, BK1). */
export const isBucketGone = (error: unknown): boolean =>
  error instanceof ProblemError && error.problem.code === 'bucket-unknown'

export const isPreconditionFailed = (error: unknown): boolean =>
  error instanceof AnswerError && error.status === 412

/** The message to show for an error: the server's own text if it sent a problem (RFC 9457). */
export function errorMessage(error: unknown): string {
  if (isUnreachable(error)) return strings.errors.unreachable
  if (error instanceof ProblemError)
    return error.problem.detail ?? error.problem.title ?? strings.errors.unexpected
  return strings.errors.unexpected
}
