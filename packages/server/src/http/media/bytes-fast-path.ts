import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { parseSignedUrl } from '../../core/signed-url.ts'
import { createWholeWriter } from '../bodies/write-whole.ts'
import { type CorsPolicy, noCorsHeaders } from '../headers/cors.ts'
import { countHeader } from '../headers/raw-headers.ts'
import type { DirectServer } from '../problems/serve-directly.ts'
import { type BytesResponder, corsHead, hasConditions, sendBytes } from './bytes-response.ts'
import type { CachedResponse, CachedResponses } from './cached-responses.ts'
import type { DownloadRecorder } from './download-recorder.ts'
import { refusesDestination } from './fetch-metadata.ts'
import type { MediaHost } from './media-host.ts'
import { closeWhenSent, wholeLength } from './prepare-body.ts'
import type { SentLink } from './private-access.ts'
import { problemHeaders } from './representation.ts'
import { bytesPath } from './serve-bytes.ts'

// A page names ten URLs, so bytes are requested more often than pages, and the framework costs more than sending a small
// file. So plain requests for bytes bypass it. Both paths have the same responder; a test compares their responses.

interface Parts {
  readonly respondToBytes: BytesResponder
  readonly cachedResponses: Omit<CachedResponses, 'headOf'>
  readonly direct: DirectServer
  readonly corsHeaders: CorsPolicy
  readonly mediaHost: MediaHost | null
  /** Null if downloads are not recorded. */
  readonly recordDownload: DownloadRecorder | null
  /** While the service stops, responses must close their connections, which the framework does. */
  readonly isStopping: () => boolean
}

const route = { url: bytesPath, problemHeaders }

/** A request that waits for the end of the event-loop tick. */
interface WaitingRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly id: string
  readonly target: Target
}

/** A waiting request, and the response to it if its item is servable. */
interface Exchange {
  readonly waiting: WaitingRequest
  readonly cached: CachedResponse
}

/**
 * Responds to plain requests for bytes directly and passes all other requests to `framework`. Requests of one tick read
 * their rows in one transaction, after the last of them has arrived: each response is correct for the time of its request.
 */
export function createBytesFastPath(parts: Parts, framework: RequestListener): RequestListener {
  const { respondToBytes, cachedResponses, direct, corsHeaders, mediaHost, recordDownload, isStopping } =
    parts
  const writeWhole = createWholeWriter()
  let requests: WaitingRequest[] = []

  const run = ({ request, response, id }: WaitingRequest, respond: () => Promise<void>) =>
    void direct.run(route, request, response, id, respond)

  const respond = (waiting: WaitingRequest) =>
    run(waiting, async () => {
      const { request, response, id, target } = waiting
      const bytes = { ...target, id, isHead: request.method === 'HEAD', raw: request }
      sendBytes(response, await respondToBytes(bytes), corsHeaders(request.headers))
    })

  function sendCached(
    { request, response, id: requestId }: WaitingRequest,
    { id, variant, ...cached }: CachedResponse,
  ): void {
    const { head, bytes, blob } = cached
    const cors = corsHeaders(request.headers)
    cachedResponses.countRequest(id, variant)
    const isHead = request.method === 'HEAD'
    if (recordDownload !== null && !isHead)
      recordDownload({ id: requestId, raw: request }, cached.item, { variant, access: null })
    if (isHead) response.writeHead(200, [...corsHead(cors), ...head]).end()
    else if (cors === noCorsHeaders) writeWhole(request, response, head, bytes)
    else response.writeHead(200, [...corsHead(cors), ...head]).end(bytes)
    // Closing frees only the memory of long bytes.
    if (bytes.length > wholeLength) closeWhenSent(response, blob)
    else void blob.close()
  }

  /** Responds with cached bytes. One query checks for all of them whether their items still exist. */
  async function respondFromMemory(exchanges: readonly Exchange[]): Promise<void> {
    // Null if the catalog cannot be read: then `respond` finds the error for each request.
    const servability = await cachedResponses
      .servability(exchanges.map(({ cached }) => cached.id))
      .catch(() => null)
    for (const [index, { waiting, cached }] of exchanges.entries()) {
      const state = servability?.[index]
      if (state === 'servable') {
        // An error concerns one response, not the others of the tick.
        try {
          sendCached(waiting, cached)
        } catch (error) {
          void cached.blob.close()
          run(waiting, () => Promise.reject(error))
        }
      } else {
        void cached.blob.close()
        if (state === 'not') cachedResponses.remove(cached.id)
        // The response may be a problem, which `respond` finds.
        respond(waiting)
      }
    }
  }

  function respondToAll(): void {
    const arrived = requests
    requests = []
    const exchanges: Exchange[] = []
    for (const waiting of arrived) {
      const cached = openCached(waiting)
      if (cached === null) respond(waiting)
      else exchanges.push({ waiting, cached })
    }
    if (exchanges.length > 0) void respondFromMemory(exchanges)
  }

  function openCached({ request, target }: WaitingRequest): CachedResponse | null {
    const { headers } = request
    if (target.link !== null) return null
    if (headers.range !== undefined || hasConditions(headers)) return null
    return cachedResponses.open(target.name, target.variant, headers.accept)
  }

  return (request, response) => {
    const target = isStopping() ? null : parseTarget(request)
    // On the host of the gallery the response is a redirect.
    if (target === null || (mediaHost?.redirectUrl(request, true) ?? null) !== null)
      return framework(request, response)
    const id = direct.begin(route, request, response)
    if (id !== null && requests.push({ request, response, id, target }) === 1) setImmediate(respondToAll)
  }
}

interface Target {
  readonly name: string
  readonly variant: string | undefined
  readonly wait: string | undefined
  readonly isDownload: boolean
  readonly link: SentLink
}

/** Matches the paths of items, and of their variants. The framework serves other queries and percent-encoded paths. */
const plainTarget =
  /^\/media\/([a-z0-9]+(?:\.[a-z0-9]+)?)(?:\?variant=([a-z0-9-]+)(?:&wait=([1-5]?[0-9]|60))?)?$/

/** The target of a plain or a signed URL; null for all others. */
function targetOf(url: string): Target | null {
  const [, name, variant, wait] = plainTarget.exec(url) ?? []
  if (name !== undefined) return { name, variant, wait, isDownload: false, link: null }
  const link = parseSignedUrl(url)
  if (link === null) return null
  const { variant: signed, isDownload } = link
  return { name: link.name, variant: signed ?? undefined, wait: link.wait, isDownload, link }
}

/** Returns null for requests that need the framework, such as those with a body or with `Expect`. */
function parseTarget(request: IncomingMessage): Target | null {
  const { method, url = '', headers } = request
  if (method !== 'GET' && method !== 'HEAD') return null
  const target = targetOf(url)
  if (target === null) return null
  if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined) return null
  if (headers.expect !== undefined || headers['service-worker'] !== undefined) return null
  if (refusesDestination(headers)) return null
  // `headers` does not show repeated ones.
  return countHeader(request, 'host') === 1 ? target : null
}
