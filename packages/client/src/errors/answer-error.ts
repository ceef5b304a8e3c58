import { MediabucketError } from './mediabucket-error.ts'

/** The properties of an `AnswerError`. */
export interface AnswerDetails {
  readonly method: string
  readonly url: string
  readonly status: number
  readonly headers: Headers
  /** The body as text, at most its first 64 KiB. */
  readonly body: string
  /** The number of attempts, including this one. */
  readonly attempts: number
  /** The milliseconds of `Retry-After`; null if there is none. */
  readonly retryAfter: number | null
}

/** The response has a status other than 2xx. If it has a problem, the error is a `ProblemError`, which extends this. */
export class AnswerError extends MediabucketError implements AnswerDetails {
  override name = 'AnswerError'
  readonly method: string
  readonly url: string
  readonly status: number
  readonly headers: Headers
  readonly body: string
  readonly attempts: number
  readonly retryAfter: number | null

  constructor(details: AnswerDetails, explanation: string) {
    // Without the query, because messages are logged and a query may contain a signature.
    const { origin, pathname } = new URL(details.url)
    super(
      `${details.method} ${origin}${pathname} answered ${details.status}${explanation && `: ${explanation}`}`,
    )
    this.method = details.method
    this.url = details.url
    this.status = details.status
    this.headers = details.headers
    this.body = details.body
    this.attempts = details.attempts
    this.retryAfter = details.retryAfter
  }
}
