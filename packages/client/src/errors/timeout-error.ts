import { MediabucketError } from './mediabucket-error.ts'

/** The service was silent for `timeout` milliseconds. Never thrown for being slow: any byte starts the time anew. */
export class TimeoutError extends MediabucketError {
  override name = 'TimeoutError'
  readonly timeout: number

  constructor(timeout: number) {
    super(`The service was silent for ${timeout} ms`)
    this.timeout = timeout
  }
}
