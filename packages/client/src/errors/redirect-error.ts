import { MediabucketError } from './mediabucket-error.ts'

/** The service redirected where this client does not follow. `location` is null where a browser hides it. */
export class RedirectError extends MediabucketError {
  override name = 'RedirectError'
  readonly url: string
  readonly location: string | null

  constructor(url: string, location: string | null, reason: string) {
    super(reason)
    this.url = url
    this.location = location
  }
}
