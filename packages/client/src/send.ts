import { AttemptTimer } from './attempt-timer.ts'
import { type AnswerDetails, AnswerError, ProblemError, RedirectError } from './errors.ts'
import { excerpt, readProblem, readText } from './responses.ts'
import { delayAfter, pause, type RetryPolicy, readRetryAfter } from './retry.ts'
import type { Transport, UploadBody } from './transport.ts'
import { parseUrl } from './urls.ts'

/** One request of the client, including its redirects. */
interface Request {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'DELETE'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: UploadBody
  /** Whether a redirect to another origin is followed, without the token. */
  readonly mayLeaveOrigin?: boolean
  /** Whether the origin of the credential receives the token. Default: true. */
  readonly withToken?: boolean | undefined
}

/** The token and the bucket that it is for, and the only origin that receives them. */
interface Credential {
  readonly token: () => string | Promise<string>
  readonly bucket: string | undefined
  readonly origin: string
}

/** A request, and how its response becomes a result. */
export interface Call<T> extends Request {
  /** Whether the result is the same if the service receives the request twice. Otherwise it is sent once. */
  readonly repeatable: boolean
  /** The number of the first attempt, if the caller counts them. Errors include it. */
  readonly attempt?: number
  readonly signal: AbortSignal | undefined
  /** Called before a retry if the service may have executed the failed attempt. */
  readonly onUncertain?: (() => void) | undefined
  /** Reads a response with a status of 2xx, and closes the timer when the body ends. */
  readonly read: (response: Response, timer: AttemptTimer) => Promise<T>
}

/** How a client sends requests. */
export interface SendSettings {
  readonly credential: Credential
  readonly retry: RetryPolicy
  /** Milliseconds without data after which an attempt fails. */
  readonly timeout: number
  readonly transport: Transport
  /** Whether the transport is the platform's own fetch, which XMLHttpRequest may replace. */
  readonly platformFetch: boolean
}

/** Sends a call, with retries. Throws the error of the last attempt. */
export async function send<T>(settings: SendSettings, call: Call<T>): Promise<T> {
  for (let attempt = call.attempt ?? 1; ; attempt += 1) {
    try {
      return await attemptCall(settings, call, attempt)
    } catch (error) {
      const delay = call.repeatable ? delayAfter(error, attempt, settings.retry) : null
      if (delay === null) throw error
      if (!isRefusal(error)) call.onUncertain?.()
      settings.retry.onRetry(error, delay)
      await pause(delay, call.signal)
    }
  }
}

/** A request with such a response has changed nothing. */
const isRefusal = (error: unknown): boolean => error instanceof AnswerError && error.status < 500

async function attemptCall<T>(settings: SendSettings, call: Call<T>, attempt: number): Promise<T> {
  const timer = new AttemptTimer(settings.timeout, call.signal)
  try {
    const response = await exchange(settings.credential, call, settings.transport, timer)
    if (!response.ok) throw await errorOf(response, call, attempt, timer)
    return await call.read(response, timer)
  } catch (error) {
    timer.close()
    throw error
  }
}

/** The maximum size of the part of an error's body that is read. Bytes. */
const maxErrorBody = 65_536

async function errorOf(
  response: Response,
  { method, url, signal }: Call<unknown>,
  attempts: number,
  timer: AttemptTimer,
): Promise<AnswerError> {
  const { status, headers } = response
  // The status is reported even if the connection breaks before the end of the body.
  const body = await readText(response, timer, maxErrorBody).catch(() => '')
  signal?.throwIfAborted()
  const details: AnswerDetails = {
    method,
    url: response.url || url,
    status,
    headers,
    body,
    attempts,
    retryAfter: readRetryAfter(headers),
  }
  const type = headers.get('content-type')
  const problem = readProblem(type, body)
  return problem ? new ProblemError(details, problem) : new AnswerError(details, excerpt(type, body))
}

const redirectStatuses = new Set([301, 302, 303, 307, 308])
const maxRedirects = 5

/**
 * Sends a request and follows its redirects itself, so that no other origin receives the token. Throws a
 * `RedirectError` for a redirect to another origin, for too many redirects, and for a body that cannot be sent again.
 */
async function exchange(
  credential: Credential,
  request: Request,
  transport: Transport,
  timer: AttemptTimer,
): Promise<Response> {
  const { method, body } = request
  let { url } = request
  let trusted = request.withToken !== false && new URL(url).origin === credential.origin
  for (let redirects = 0; redirects <= maxRedirects; redirects += 1) {
    const headers = new Headers(request.headers)
    if (trusted) {
      const current = credential.token()
      const token = typeof current === 'string' ? current : await current
      requireToken(token)
      headers.set('authorization', `Bearer ${token}`)
      if (credential.bucket !== undefined) headers.set('mediabucket-bucket', credential.bucket)
    }
    const redirect = trusted ? 'manual' : 'follow'
    const response = await transport({ method, url, headers, body, redirect }, timer)
    const next = redirectOf(response, url, request, credential.origin)
    if (!next) return response
    response.body?.cancel().catch(() => {})
    // After a redirect to another origin the token is not sent again, not even to its own origin.
    trusted &&= next.origin === credential.origin
    url = next.href
  }
  throw new RedirectError(request.url, url, `The service redirects more than ${maxRedirects} times`)
}

/** The target of a redirect; null if the response is not one. Throws a `RedirectError` for a target that is not followed. */
function redirectOf(response: Response, url: string, request: Request, origin: string): URL | null {
  if (response.type === 'opaqueredirect') {
    throw new RedirectError(
      url,
      null,
      'The service redirects, and browsers hide the target; use the final URL',
    )
  }
  const location = redirectStatuses.has(response.status) ? response.headers.get('location') : null
  if (location === null) return null

  const next = parseUrl(location, url)
  const refuse = (reason: string) =>
    new RedirectError(url, next?.href ?? location, `The service redirects ${reason}`)
  if (!next || !/^https?:$/.test(next.protocol) || next.username || next.password) {
    throw refuse('to a target that is not an http or https URL')
  }
  if (next.origin !== origin && !request.mayLeaveOrigin) {
    throw refuse(`to ${next.origin}; create the client with that URL to send it the token`)
  }
  if (request.method !== 'GET' && response.status < 307) {
    throw refuse(`a ${request.method} with a status (${response.status}) that may turn it into a GET`)
  }
  if (request.body && !request.body.content.blob) throw refuse('an upload whose stream cannot be sent again')
  return next
}

/** Throws a `TypeError` without the token, which the error of `Headers` would contain. */
export function requireToken(token: unknown): asserts token is string {
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token))
    throw new TypeError('token must be a bearer token: visible ASCII characters without spaces')
}
