import type { IncomingMessage, RequestListener } from 'node:http'
import type { CorsPolicy } from '../headers/cors.ts'
import { countHeader } from '../headers/raw-headers.ts'
import type { DirectServer } from '../problems/serve-directly.ts'
import { type BytesRequest, type BytesResponder, problemHeaders, sendBytes } from './bytes-response.ts'
import { refusesDestination } from './fetch-metadata.ts'
import type { MediaHost } from './media-host.ts'
import { bytesPath } from './serve-bytes.ts'

// A page names ten URLs, so bytes are requested more often than pages, and the framework costs more than sending a small
// file. So plain requests for bytes bypass it. Both paths have the same responder; a test compares their responses.

interface Parts {
  readonly respondToBytes: BytesResponder
  readonly serveDirectly: DirectServer
  readonly corsHeaders: CorsPolicy
  readonly mediaHost: MediaHost | null
  /** While the service stops, responses must close their connections, which the framework does. */
  readonly isStopping: () => boolean
}

const route = { url: bytesPath, problemHeaders }

/** Responds to plain requests for bytes directly and passes all other requests to `framework`. */
export function createBytesFastPath(parts: Parts, framework: RequestListener): RequestListener {
  const { respondToBytes, serveDirectly, corsHeaders, mediaHost, isStopping } = parts
  const endOfTick = createTickEnd()

  return (request, response) => {
    const target = isStopping() ? null : parseTarget(request)
    // On the host of the gallery the response is a redirect.
    if (target === null || (mediaHost?.redirectUrl(request, true) ?? null) !== null)
      return framework(request, response)
    const { headers, method } = request
    void serveDirectly(route, request, response, async (id) => {
      await endOfTick()
      const bytes = { ...target, id, isHead: method === 'HEAD', isDownload: false, headers }
      sendBytes(response, await respondToBytes(bytes), corsHeaders(headers))
    })
  }
}

/** Matches the paths of items, and of their variants. The framework serves other queries and percent-encoded paths. */
const plainTarget = /^\/media\/([a-z0-9]+(?:\.[a-z0-9]+)?)(?:\?variant=([a-z]+))?$/

/** Returns null for requests that need the framework, such as those with a body or with `Expect`. */
function parseTarget(request: IncomingMessage): Pick<BytesRequest, 'name' | 'variant'> | null {
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

/**
 * Returns the end of the current event-loop tick. Requests of one tick then read their rows in one transaction, after the
 * last of them has arrived: each response is correct for the time of its request, and no row is kept for a later one.
 */
function createTickEnd(): () => Promise<void> {
  let end: Promise<void> | null = null
  return () => {
    end ??= new Promise((resolve) => {
      setImmediate(() => {
        end = null
        resolve()
      })
    })
    return end
  }
}
