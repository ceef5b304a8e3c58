import { MediabucketError } from './mediabucket-error.ts'

/** No data was sent or received for `timeout` milliseconds. Every byte restarts the timeout. */
export class TimeoutError extends MediabucketError {
  override name = 'TimeoutError'
  readonly timeout: number

  constructor(timeout: number) {
    super(`No data was sent or received for ${timeout} ms`)
    this.timeout = timeout
  }
}
