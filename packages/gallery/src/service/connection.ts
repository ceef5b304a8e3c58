import { type ReadonlySignal, signal } from '@preact/signals'
import { isUnauthorized, isUnreachable } from './errors.ts'

/** Whether the service answers, and the patience to wait until it does again. */
export interface Connection {
  readonly lost: ReadonlySignal<boolean>
  /** Runs a call and learns from its outcome. */
  watch<T>(call: () => Promise<T>): Promise<T>
  /** Tells of a loss that something else met. */
  report(): void
  retryNow(): void
  /**
   * Resolves when the service has answered, however long that takes; `onWait` hears when it takes long. Code is loaded
   * after this: a browser that could not fetch a module once never tries it again.
   */
  reached(onWait?: () => void): Promise<void>
  /** Runs when the service is back. */
  onBack(listener: () => void): void
  close(): void
}

const firstDelay = 500
const longestDelay = 2000

/** `probe` is a cheap call; `onRefused` hears that the token is good no more. */
export function createConnection(probe: () => Promise<unknown>, onRefused: () => void): Connection {
  const lost = signal(false)
  const listeners = new Set<() => void>()
  let delay = firstDelay
  let timer: ReturnType<typeof setTimeout> | undefined
  let closed = false

  function report(): void {
    if (closed || lost.value) return
    lost.value = true
    delay = firstDelay
    timer = setTimeout(attempt, delay)
  }

  function found(): void {
    if (!lost.value) return
    lost.value = false
    clearTimeout(timer)
    for (const listener of listeners) listener()
  }

  async function attempt(): Promise<void> {
    clearTimeout(timer)
    try {
      await probe()
      found()
    } catch (error) {
      if (isUnauthorized(error)) return onRefused()
      if (!isUnreachable(error)) return found()
      if (closed || !lost.value) return
      delay = Math.min(delay * 2, longestDelay)
      timer = setTimeout(attempt, delay)
    }
  }

  const retryNow = () => {
    if (!lost.value) return
    delay = firstDelay
    void attempt()
  }
  addEventListener('online', retryNow)
  addEventListener('offline', report)

  async function watch<T>(call: () => Promise<T>): Promise<T> {
    try {
      const result = await call()
      found()
      return result
    } catch (error) {
      if (isUnreachable(error)) report()
      if (isUnauthorized(error)) onRefused()
      throw error
    }
  }

  return {
    lost,
    watch,
    report,
    async reached(onWait) {
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
    onBack: (listener) => void listeners.add(listener),
    close() {
      closed = true
      clearTimeout(timer)
      removeEventListener('online', retryNow)
      removeEventListener('offline', report)
    },
  }
}
