import { MediabucketError } from './mediabucket-error.ts'

/** No answer, or not the whole of it: no connection, a connection cut, a name not found. `cause` is the platform's error. */
export class ConnectionError extends MediabucketError {
  override name = 'ConnectionError'

  constructor(cause: unknown) {
    super('The connection to the service failed or was cut', { cause })
  }
}
