import { ConnectionError } from './errors/connection-error.ts'
import { TimeoutError } from './errors/timeout-error.ts'

/** What setTimeout can count to; anything longer is no limit. */
const longestTimer = 2 ** 31 - 1

/** Watches over one try: ends it when the other side is silent for too long, or when the caller aborts. */
export class Watch {
  readonly #controller = new AbortController()
  readonly #timeout: number
  readonly #outer: AbortSignal | undefined
  readonly #follow = () => this.abort(this.#outer?.reason)
  #timer: ReturnType<typeof setTimeout> | undefined

  /** `timeout` is in milliseconds; it counts only within `during`, and while not paused. */
  constructor(timeout: number, outer: AbortSignal | undefined) {
    this.#timeout = timeout
    this.#outer = outer
    if (outer?.aborted) this.abort(outer.reason)
    else outer?.addEventListener('abort', this.#follow, { once: true })
  }

  /** Aborted for the reason with which the try shall fail. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  abort(reason: unknown): void {
    this.pause()
    this.#controller.abort(reason)
  }

  /** The other side was heard, or is waited for from now on. */
  restart(): void {
    this.pause()
    if (this.#timeout > longestTimer || this.signal.aborted) return
    this.#timer = setTimeout(() => this.abort(new TimeoutError(this.#timeout)), this.#timeout)
  }

  /** The other side is not to blame for the silence that begins. */
  pause(): void {
    clearTimeout(this.#timer)
  }

  /** Waits for the other side; a failure is the reason of the abort, or else a `ConnectionError`. */
  during<T>(operation: () => Promise<T>, timed = true): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const { signal } = this
      const onAbort = () => reject(signal.reason)
      const settle = () => {
        this.pause()
        signal.removeEventListener('abort', onAbort)
      }
      if (signal.aborted) return onAbort()
      signal.addEventListener('abort', onAbort, { once: true })
      if (timed) this.restart()
      operation().then(
        (value) => {
          settle()
          resolve(value)
        },
        (error) => {
          settle()
          reject(signal.aborted ? signal.reason : new ConnectionError(error))
        },
      )
    })
  }

  /** The try is over: nothing of it goes on, an upload that was refused half-way included. */
  close(): void {
    this.#outer?.removeEventListener('abort', this.#follow)
    this.abort(undefined)
  }
}
