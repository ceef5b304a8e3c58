import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { type CorsPolicy, noCorsHeaders } from '../headers/cors.ts'
import { countHeader } from '../headers/raw-headers.ts'
import type { DirectServer } from '../problems/serve-directly.ts'
import { type BytesResponder, corsHead, hasConditions, problemHeaders, sendBytes } from './bytes-response.ts'
import type { CachedResponse, CachedResponses } from './cached-responses.ts'
import { refusesDestination } from './fetch-metadata.ts'
import type { MediaHost } from './media-host.ts'
import { wholeLength, writeMemory } from './prepare-body.ts'
import { createHeadWriter } from './reuse-heads.ts'
import { bytesPath } from './serve-bytes.ts'

// A page names ten URLs, so bytes are requested more often than pages, and the framework costs more than sending a small
// file. So plain requests for bytes bypass it. Both paths have the same responder; a test compares their responses.

interface Parts {
  readonly respondToBytes: BytesResponder
  readonly cachedResponses: Pick<CachedResponses, 'open' | 'areServable'>
  readonly direct: DirectServer
  readonly corsHeaders: CorsPolicy
  readonly mediaHost: MediaHost | null
  /** While the service stops, responses must close their connections, which the framework does. */
  readonly isStopping: () => boolean
}

const route = { url: bytesPath, problemHeaders }

/** A request that waits for the end of the event-loop tick. */
interface Waiting {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly id: string
  readonly target: Target
}

/**
 * Responds to plain requests for bytes directly and passes all other requests to `framework`. Requests of one tick read
 * their rows in one transaction, after the last of them has arrived: each response is correct for the time of its request,
 * and no row is kept for a later one.
 */
export function createBytesFastPath(parts: Parts, framework: RequestListener): RequestListener {
  const { respondToBytes, cachedResponses, direct, corsHeaders, mediaHost, isStopping } = parts
  const writeHead = createHeadWriter()
  let waiting: Waiting[] = []

  const respond = ({ request, response, id, target }: Waiting) =>
    void direct.run(route, request, response, id, async () => {
      const { headers, method } = request
      const bytes = { ...target, id, isHead: method === 'HEAD', isDownload: false, headers }
      sendBytes(response, await respondToBytes(bytes), corsHeaders(headers))
    })

  function sendCached({ request, response }: Waiting, { head, bytes, text, blob }: CachedResponse): void {
    const cors = corsHeaders(request.headers)
    if (cors === noCorsHeaders) writeHead(request, response, head)
    else response.writeHead(200, [...corsHead(cors), ...head])
    const isHead = request.method === 'HEAD'
    if (!isHead && bytes.length > wholeLength) {
      writeMemory(blob, bytes)(response)
      return
    }
    // Few bytes stay in memory as long as they are referenced.
    void blob.close()
    if (isHead) response.end()
    else response.end(text ?? bytes, 'latin1')
  }

  /** Bytes in memory need no more than one look whether their items exist. */
  async function respondFromMemory(found: readonly (readonly [Waiting, CachedResponse])[]): Promise<void> {
    const servable = await cachedResponses.areServable(found.map(([, { id }]) => id)).catch(() => [])
    for (const [index, [one, cached]] of found.entries()) {
      if (servable[index]) sendCached(one, cached)
      else {
        // The response may be a problem, which the other path finds.
        void cached.blob.close()
        respond(one)
      }
    }
  }

  function respondToAll(): void {
    const all = waiting
    waiting = []
    const found: (readonly [Waiting, CachedResponse])[] = []
    for (const one of all) {
      const cached = openCached(one)
      if (cached === null) respond(one)
      else found.push([one, cached])
    }
    if (found.length > 0) void respondFromMemory(found)
  }

  function openCached({ request: { headers }, target: { name, variant } }: Waiting): CachedResponse | null {
    return headers.range === undefined && !hasConditions(headers) ? cachedResponses.open(name, variant) : null
  }

  return (request, response) => {
    const target = isStopping() ? null : parseTarget(request)
    // On the host of the gallery the response is a redirect.
    if (target === null || (mediaHost?.redirectUrl(request, true) ?? null) !== null)
      return framework(request, response)
    const id = direct.begin(route, request, response)
    if (id !== null && waiting.push({ request, response, id, target }) === 1) setImmediate(respondToAll)
  }
}

interface Target {
  readonly name: string
  readonly variant: string | undefined
}

/** Matches the paths of items, and of their variants. The framework serves other queries and percent-encoded paths. */
const plainTarget = /^\/media\/([a-z0-9]+(?:\.[a-z0-9]+)?)(?:\?variant=([a-z]+))?$/

/** Returns null for requests that need the framework, such as those with a body or with `Expect`. */
function parseTarget(request: IncomingMessage): Target | null {
  const { method, url = '', headers } = request
  if (method !== 'GET' && method !== 'HEAD') return null
  const [, name, variant] = plainTarget.exec(url) ?? []
  if (name === undefined) return null
  if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined) return null
  if (headers.expect !== undefined || headers['service-worker'] !== undefined) return null
  if (refusesDestination(headers)) return null
  // `headers` does not show repeated ones.
  return countHeader(request, 'host') === 1 ? { name, variant } : null
}
