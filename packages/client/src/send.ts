import { AttemptTimer } from './attempt-timer.ts'
import { type AnswerDetails, AnswerError } from './errors/answer-error.ts'
import { ProblemError } from './errors/problem-error.ts'
import { type Credential, exchange, type Request } from './exchange.ts'
import { pause } from './pause.ts'
import { excerpt, readProblem } from './problem.ts'
import { readText } from './response-body.ts'
import { delayAfter, type RetryPolicy, readRetryAfter } from './retry.ts'
import type { Transport } from './transport.ts'

/** A request, and how its response becomes a result. */
export interface Call<T> extends Request {
  /** Whether the result is the same if the service receives the request twice. */
  readonly repeatable: boolean
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
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await sendOnce(settings, call, attempt)
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

/** Sends a call once. `attempt` is the number of attempts that an error reports. */
export async function sendOnce<T>(settings: SendSettings, call: Call<T>, attempt: number): Promise<T> {
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
