import { MediabucketError } from './mediabucket-error.ts'

/** The service sent a redirect that this client does not follow. `location` is null if the browser hides it. */
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
