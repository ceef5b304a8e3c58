import type { ServerResponse } from 'node:http'
import { urlsOfBucket } from '../core/bucket-pictures.ts'
import { Fault, type ParameterFault } from '../core/faults.ts'
import { focusRule, parseFocus } from '../core/focus.ts'
import { type Labels, labelRule, parseLabels } from '../core/item-labels.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import { parseExpiry } from '../core/times.ts'
import type { Caller } from '../http/authorizer.ts'
import { malformed } from '../http/bodies.ts'
import type { HttpContext } from '../http/context.ts'
import { noStore, weightOf } from '../http/headers.ts'
import { problemDetails } from '../http/problems.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import { mediaObjectOf } from '../items/item-operations.ts'
import type { Stored } from './commit.ts'
import { defaultExpiry, statedExpiry } from './new-items.ts'
import { refuseFactHeaders, requestKey } from './upload-routes.ts'
import { maxSourceUrl, parseSourceUrl, sourceUrlRule } from './url-source.ts'
import * as openapi from './url-upload-routes.openapi.ts'
import type { UrlProgress, UrlUpload, UrlUploads } from './url-uploads.ts'

interface UrlUploadRouteParts {
  readonly http: HttpContext
  readonly urlUploads: UrlUploads
}

/** `POST /api/media/from-url`: stores a file that the service requests from another server (docs/interface.md, Upload from a URL). */
export function urlUploadRoutes(http: HttpContext, urlUploads: UrlUploads): readonly Route[] {
  const parts = { http, urlUploads }
  return [
    route('POST', '/api/media/from-url', openapi.storeFromUrl, (exchange) => storeFromUrl(parts, exchange), {
      readsBody: true,
      kind: 'upload',
    }),
  ]
}

const members = ['url', 'filename', 'content_type', 'labels', 'focus', 'expires_at', 'sha256'] as const

const eventType = 'text/event-stream'

async function storeFromUrl(
  { http, urlUploads }: UrlUploadRouteParts,
  exchange: Exchange,
): Promise<Reply | null> {
  const { request, response } = exchange
  const { caller, body } = await http.readAuthorizedJson(exchange, 'media:write', members)
  urlUploads.requireOn(caller)
  refuseFactHeaders(request, 'the body')
  http.metrics.countActiveUpload(response)
  const upload = readUpload(body, caller, exchange)
  const ended = endOf(response, http.closing)
  if (weightOf(request.headers.accept, eventType) > weightOf(request.headers.accept, 'application/json')) {
    await new ProgressStream(http, exchange, caller).follow((onProgress) =>
      urlUploads.store(caller, upload, { signal: ended, onProgress }),
    )
    return null
  }
  const stored = await urlUploads.store(caller, upload, { signal: ended, onProgress: () => undefined })
  const media = describe(http, caller, stored)
  const location = `${http.urls.baseUrl}/api/media/${media.id}`
  return { status: 201, headers: { 'cache-control': 'private, no-cache', location }, json: media }
}

/** Aborted when the client closes the connection, and when the service stops. */
function endOf(response: ServerResponse, closing: AbortSignal): AbortSignal {
  const gone = new AbortController()
  const leave = () => gone.abort(new Fault('upload-incomplete', 'The client has closed the connection.'))
  if (response.closed) leave()
  else response.once('close', leave)
  const stop = () => gone.abort(new Fault('shutting-down', 'The service is stopping.'))
  if (closing.aborted) stop()
  closing.addEventListener('abort', stop, { once: true })
  response.once('close', () => closing.removeEventListener('abort', stop))
  return gone.signal
}

function describe({ urls }: HttpContext, caller: Caller, { items: [item] }: Stored) {
  if (item === undefined) throw new TypeError('an upload from a URL has stored nothing')
  return mediaObjectOf(urlsOfBucket(urls, caller), item)
}

/** Milliseconds between two events of progress, and between two comments that keep the connection open. */
const progressInterval = 500
const longestSilence = 10_000

/** A response of Server-Sent Events: progress, and at the end the item or a problem. */
class ProgressStream {
  readonly #http: HttpContext
  readonly #exchange: Exchange
  readonly #caller: Caller
  #sentAt = Number.NEGATIVE_INFINITY

  constructor(http: HttpContext, exchange: Exchange, caller: Caller) {
    this.#http = http
    this.#exchange = exchange
    this.#caller = caller
  }

  /** The response begins with the first progress. What `store` throws before it is a problem as of any other request. */
  async follow(store: (onProgress: (progress: UrlProgress) => void) => Promise<Stored>): Promise<void> {
    const { response } = this.#exchange
    const silence = Math.min(longestSilence, this.#http.settings.idleTimeout / 3)
    const timer = setInterval(() => {
      if (response.headersSent && !response.closed) response.write(':\n\n')
    }, silence)
    try {
      const stored = await store((progress) => this.#progress(progress))
      this.#send('stored', describe(this.#http, this.#caller, stored))
    } catch (error) {
      if (!response.headersSent) throw error
      const fault = this.#http.reportFault(error, this.#exchange)
      this.#send('problem', problemDetails(fault, this.#http.settings.baseUrl, this.#exchange.id))
    } finally {
      clearInterval(timer)
    }
    response.end()
  }

  #progress(progress: UrlProgress): void {
    const now = performance.now()
    if (now - this.#sentAt < progressInterval) return
    this.#sentAt = now
    this.#send('progress', progress)
  }

  #send(event: string, data: object): void {
    const { request, response } = this.#exchange
    if (response.closed) return
    if (!response.headersSent)
      response.writeHead(200, {
        ...this.#http.corsHeaders(request.headers),
        ...noStore,
        'content-type': eventType,
        'x-accel-buffering': 'no',
      })
    response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
  }
}

/** Throws Fault `json-malformed`. */
function readUpload(body: JsonObject, caller: Caller, { request }: Exchange): UrlUpload {
  const faults: ParameterFault[] = []
  const {
    url,
    filename = null,
    content_type: type = null,
    labels = null,
    focus = null,
    expires_at = null,
    sha256 = null,
  } = body
  const key = requestKey(request, caller)
  const parsed = typeof url === 'string' ? parseSourceUrl(url) : null
  if (parsed === null)
    faults.push({ parameter: 'url', detail: sourceUrlRule, maximum: maxSourceUrl, unit: 'characters' })
  const [name, declaredType] = [textOrNull(filename), textOrNull(type)]
  if (name === undefined) faults.push({ parameter: 'filename', detail: 'A text, or null.' })
  if (declaredType === undefined || (declaredType !== null && !mediaType.test(declaredType)))
    faults.push({ parameter: 'content_type', detail: 'A media type such as image/png, or null.' })
  const labelled = readLabels(labels)
  if (labelled === undefined) faults.push({ parameter: 'labels', detail: `An object with ${labelRule}.` })
  const focused = focus === null ? null : parseFocus(focus)
  if (focused === undefined)
    faults.push({
      parameter: 'focus',
      detail: `Null, or an object with ${focusRule}.`,
      minimum: 0,
      maximum: 1,
    })
  const now = Date.now()
  const expiry = readExpiry(expires_at, key === null ? now : 0)
  if (expiry === undefined)
    faults.push({
      parameter: 'expires_at',
      detail: 'A time of RFC 3339 in the future, such as 2030-01-31T12:00:00Z.',
    })
  const digest = readDigest(sha256)
  if (digest === undefined)
    faults.push({ parameter: 'sha256', detail: 'A SHA-256 in 64 hexadecimal digits.' })
  if (
    faults.length > 0 ||
    parsed === null ||
    name === undefined ||
    declaredType === undefined ||
    labelled === undefined ||
    focused === undefined ||
    expiry === undefined ||
    digest === undefined
  )
    throw malformed(faults)
  return {
    ...{ url: parsed, filename: name, declaredType, labels: labelled, focus: focused, sha256: digest, key },
    expiresAt:
      expiry === null ? defaultExpiry(caller.itemDays, now) : statedExpiry(expiry, caller.limits, now),
  }
}

/** A media type (RFC 9110, section 8.3.1), and parameters of any form, on one line of ASCII. */
const mediaType = /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+(?: *;[\x20-\x7e]*)?$/

const textOrNull = (value: unknown): string | null | undefined =>
  value === null || typeof value === 'string' ? value : undefined

const readLabels = (value: unknown): Labels | null | undefined =>
  value === null ? null : isObject(value) ? parseLabels(Object.entries(value)) : undefined

const readExpiry = (value: unknown, earliest: number): number | null | undefined =>
  value === null ? null : typeof value === 'string' ? parseExpiry(value, earliest) : undefined

const readDigest = (value: unknown): Uint8Array | null | undefined =>
  value === null
    ? null
    : typeof value === 'string' && /^[0-9a-f]{64}$/i.test(value)
      ? Buffer.from(value, 'hex')
      : undefined
