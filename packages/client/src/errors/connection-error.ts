import { MediabucketError } from './mediabucket-error.ts'

/** No complete response: the connection failed or broke, or the host was not found. `cause` is the platform's error. */
export class ConnectionError extends MediabucketError {
  override name = 'ConnectionError'

  constructor(cause: unknown) {
    super('The connection to the service failed or was cut', { cause })
  }
}
