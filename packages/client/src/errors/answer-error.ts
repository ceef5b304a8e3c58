import { MediabucketError } from './mediabucket-error.ts'

/** What an `AnswerError` tells. */
export interface AnswerDetails {
  readonly method: string
  readonly url: string
  readonly status: number
  readonly headers: Headers
  /** The answer's body as text, at most its first 64 KiB. */
  readonly body: string
  /** How many tries were made, this one included. */
  readonly attempts: number
  /** Milliseconds that the service asked to wait, null when it did not. */
  readonly retryAfter: number | null
}

/** The service refused: any status but 2xx, with whatever body. Problems are `ProblemError`, which extends this. */
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
    // The query stays out of messages, which end in logs: it may sign a URL.
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
