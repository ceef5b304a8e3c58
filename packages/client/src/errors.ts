/**
 * The class of all errors of this client, with two exceptions: a wrong argument is a `TypeError`, and an aborted call
 * rejects with the reason of its signal.
 */
export class MediabucketError extends Error {
  override name = 'MediabucketError'
}

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

/** What a problem states in words, for programs. Members of other types are omitted. */
export interface FaultMembers {
  /** All values that are accepted. */
  readonly accepted?: readonly string[]
  /** The limits of a number, or of a size in `unit`. Inclusive. */
  readonly minimum?: number
  readonly maximum?: number
  /** Such as `bytes`, `characters` or `seconds`. A number has none. */
  readonly unit?: string
  /** What is left of `maximum`. */
  readonly left?: number
  /** The members that the JSON object may have. */
  readonly members?: readonly string[]
  /** The scopes that the token lacks. */
  readonly missing?: readonly string[]
  /** Why the service is not ready. */
  readonly reasons?: readonly string[]
  /** The status of the other server, in the problem of an upload from a URL. */
  readonly source_status?: number
}

/** An invalid parameter of a request. */
export interface ParameterFault extends FaultMembers {
  readonly parameter: string
  readonly detail: string
}

/** The reason of a refusal, as the service reports it (RFC 9457). Members of other types are omitted. */
export interface Problem extends FaultMembers {
  /** A URL that names the problem and explains it; `about:blank` if the service names none. */
  readonly type: string
  readonly title?: string
  readonly status?: number
  readonly detail?: string
  /** The id under which the service logged the request. */
  readonly instance?: string
  /** The code of the problem for programs, such as `media-unknown`. */
  readonly code?: string
  readonly errors?: readonly ParameterFault[]
  /** Other members that the service sends. */
  readonly [extension: string]: unknown
}

/** The service refused and sent a problem (RFC 9457). Programs compare `problem.code`. */
export class ProblemError extends AnswerError {
  override name = 'ProblemError'
  readonly problem: Problem

  constructor(details: AnswerDetails, problem: Problem) {
    super(details, problem.detail || problem.title || problem.type)
    this.problem = problem
  }
}

/** No complete response: the connection failed or broke, or the host was not found. `cause` is the platform's error. */
export class ConnectionError extends MediabucketError {
  override name = 'ConnectionError'

  constructor(cause: unknown) {
    super('The connection to the service failed or was cut', { cause })
  }
}

/** No data was sent or received for `timeout` milliseconds. Every byte restarts the timeout. */
export class TimeoutError extends MediabucketError {
  override name = 'TimeoutError'
  readonly timeout: number

  constructor(timeout: number) {
    super(`No data was sent or received for ${timeout} ms`)
    this.timeout = timeout
  }
}

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

/** A successful response of the wrong shape. `path` is the invalid field, such as `links[3].url`; empty for the whole body. */
export class ShapeError extends MediabucketError {
  override name = 'ShapeError'
  readonly path: string

  constructor(what: string, path: string, fault: string) {
    super(`The response is not ${what}: ${path || 'the response'} ${fault}`)
    this.path = path
  }
}
