import type { AttemptTimer } from './attempt-timer.ts'
import type { CallOptions } from './client-options.ts'
import { type AnswerDetails, ConnectionError, ProblemError, ShapeError } from './errors.ts'
import { jsonBody } from './json.ts'
import type { Labels } from './labels.ts'
import { type Focus, type Media, readMedia } from './media.ts'
import { chunksOf, jsonOf, readProblem } from './responses.ts'
import { type SendSettings, send } from './send.ts'
import { count, countOrNull, objectOf, parse } from './shape.ts'
import { randomKey } from './upload.ts'
import { type Endpoints, httpUrl } from './urls.ts'

/** Bytes that the service has received from the other server. */
export interface UrlUploadProgress {
  readonly received: number
  /** Null if the other server does not state it. */
  readonly size: number | null
}

/** The options of an upload from a URL. */
export interface UrlUploadOptions extends CallOptions {
  /** The name to store. Default: the one that the other server states, or the end of the URL. */
  readonly filename?: string | undefined
  /** The type to declare. Default: that of the other server. */
  readonly contentType?: string | undefined
  /** When the item expires. Default: by the settings of the bucket. */
  readonly expiresAt?: Date | undefined
  /** The labels of the item. Default: none. */
  readonly labels?: Labels | undefined
  /** The point of a picture that sizes keep that cut. Default: none. */
  readonly focus?: Focus | undefined
  /** The SHA-256 that the file must have, in hexadecimal digits. Default: it is not checked. */
  readonly sha256?: string | undefined
  /** Called at most twice a second. */
  readonly onProgress?: ((progress: UrlUploadProgress) => void) | undefined
  /** Identifies repeated requests, for 24 hours. Default: a random key for each call. */
  readonly idempotencyKey?: string | undefined
}

const progressShape = objectOf<UrlUploadProgress>({ received: count, size: countOrNull })

/** Has the service request a file from another server (docs/interface.md FU1). Follows its events, which also keep the connection open. */
export async function uploadFromUrl(
  settings: SendSettings,
  endpoints: Endpoints,
  source: string | URL,
  options: UrlUploadOptions,
): Promise<Media> {
  const { filename, contentType, expiresAt, labels, focus, sha256, onProgress, idempotencyKey, signal } =
    options
  const request = {
    ...{ url: httpUrl(source, 'the URL of the file').href, filename, labels, focus, sha256 },
    content_type: contentType,
    expires_at: expiresAt?.toISOString(),
  }
  const url = `${endpoints.uploads}/from-url`
  return await send(settings, {
    ...{ method: 'POST', url, repeatable: true, signal },
    headers: {
      accept: 'text/event-stream, application/problem+json;q=0.5',
      'content-type': 'application/json',
      'idempotency-key': idempotencyKey ?? randomKey(),
    },
    body: jsonBody(request),
    async read(response, timer) {
      for await (const { event, data } of eventsOf(response, timer)) {
        const value = jsonOf(data)
        if (event === 'progress') onProgress?.(parse('the progress of an upload', progressShape, value))
        if (event === 'stored') return readMedia(value)
        if (event === 'problem') throw problemOf(data, response, url)
      }
      throw new ConnectionError(new Error('the events have ended without a result'))
    },
  })
}

function problemOf(body: string, { headers, url }: Response, requested: string): Error {
  const problem = readProblem('application/problem+json', body)
  if (problem === null) return new ShapeError('a problem', '', 'must be a JSON object')
  const status = problem.status ?? 500
  const details: AnswerDetails = {
    ...{ method: 'POST', url: url || requested, status, headers, body },
    ...{ attempts: 1, retryAfter: null },
  }
  return new ProblemError(details, problem)
}

/** Bytes of one event. A media object is far shorter. */
const maxEvent = 1_048_576

/** Server-Sent Events, as the service writes them: a line with the type, and one with the data. */
async function* eventsOf(
  response: Response,
  timer: AttemptTimer,
): AsyncGenerator<{ readonly event: string; readonly data: string }, void, undefined> {
  try {
    const decoder = new TextDecoder()
    let text = ''
    for await (const chunk of chunksOf(response, timer)) {
      text += decoder.decode(chunk, { stream: true })
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      if (text.length > maxEvent) throw new ShapeError('an event', '', 'is too long')
      for (const block of blocks) {
        const [, event, data] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? []
        if (event !== undefined && data !== undefined) yield { event, data }
      }
    }
  } finally {
    timer.close()
  }
}
