import { ConnectionError, TimeoutError } from './errors.ts'

/** The maximum of setTimeout; a longer timeout is not applied. */
const maxTimer = 2 ** 31 - 1

/** The timeout of one attempt to send a request. It aborts the attempt, and so does the caller's own signal. */
export class AttemptTimer {
  readonly #controller = new AbortController()
  readonly #timeout: number
  readonly #outer: AbortSignal | undefined
  readonly #follow = () => this.abort(this.#outer?.reason)
  #timer: ReturnType<typeof setTimeout> | undefined

  /** `timeout` is in milliseconds. It runs only while `during` waits, and not while paused. */
  constructor(timeout: number, outer: AbortSignal | undefined) {
    this.#timeout = timeout
    this.#outer = outer
    if (outer?.aborted) this.abort(outer.reason)
    else outer?.addEventListener('abort', this.#follow, { once: true })
  }

  /** Aborts with the error of the attempt as its reason. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  abort(reason: unknown): void {
    this.pause()
    this.#controller.abort(reason)
  }

  /** Restarts the timeout, because data arrived or a wait begins. */
  restart(): void {
    this.pause()
    if (this.#timeout > maxTimer || this.signal.aborted) return
    this.#timer = setTimeout(() => this.abort(new TimeoutError(this.#timeout)), this.#timeout)
  }

  /** Stops the timeout until `restart`, because the service is not the cause of the delay. */
  pause(): void {
    clearTimeout(this.#timer)
  }

  /** Waits for an operation of the service. Rejects with the reason of the abort, or with a `ConnectionError`. */
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

  /** Ends the attempt and aborts what is left of it, such as the rest of an upload that was refused early. */
  close(): void {
    this.#outer?.removeEventListener('abort', this.#follow)
    this.abort(undefined)
  }
}
