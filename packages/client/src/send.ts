import { readText } from './answer-body.ts'
import { type AnswerDetails, AnswerError } from './errors/answer-error.ts'
import { ProblemError } from './errors/problem-error.ts'
import { type Credential, exchange, type Request } from './exchange.ts'
import { pause } from './pause.ts'
import { excerpt, readProblem } from './problem.ts'
import { delayAfter, type RetryPolicy, readRetryAfter } from './retry.ts'
import type { Transport } from './transport.ts'
import { Watch } from './watch.ts'

/** A request, and what makes a result of its answer. */
export interface Call<T> extends Request {
  /** Whether it does no harm when it reaches the service twice. */
  readonly repeatable: boolean
  readonly signal: AbortSignal | undefined
  /** Reads an answer with a status of 2xx, and closes the watch when nothing more is to come. */
  readonly read: (answer: Response, watch: Watch) => Promise<T>
}

/** How this client sends. */
export interface Sending {
  readonly credential: Credential
  readonly retry: RetryPolicy
  /** Milliseconds of silence after which a try has failed. */
  readonly timeout: number
  readonly transport: Transport
  /** Whether the transport is the platform's own fetch, so that XMLHttpRequest may stand in for it. */
  readonly platformFetch: boolean
}

/** Tries a call until it succeeds, fails for good, or has been tried often enough; throws what the last try threw. */
export async function send<T>(sending: Sending, call: Call<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await sendOnce(sending, call, attempt)
    } catch (error) {
      const delay = call.repeatable ? delayAfter(error, attempt, sending.retry) : null
      if (delay === null) throw error
      await pause(delay, call.signal)
    }
  }
}

/** Tries a call once; `attempt` is what an error shall tell of the tries made. */
export async function sendOnce<T>(sending: Sending, call: Call<T>, attempt: number): Promise<T> {
  const watch = new Watch(sending.timeout, call.signal)
  try {
    const answer = await exchange(sending.credential, call, sending.transport, watch)
    if (!answer.ok) throw await errorOf(answer, call, attempt, watch)
    return await call.read(answer, watch)
  } catch (error) {
    watch.close()
    throw error
  }
}

/** More of an error's body is not read. Bytes. */
const longestBody = 65_536

async function errorOf(
  answer: Response,
  { method, url, signal }: Call<unknown>,
  attempts: number,
  watch: Watch,
): Promise<AnswerError> {
  const { status, headers } = answer
  // What the status says must not be lost when the connection breaks after it.
  const body = await readText(answer, watch, longestBody).catch(() => '')
  signal?.throwIfAborted()
  const details: AnswerDetails = {
    method,
    url: answer.url || url,
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
