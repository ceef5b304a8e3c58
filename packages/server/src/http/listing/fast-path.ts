import { once } from 'node:events'
import type { RequestListener, ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import type { PageBody } from '../../media/listing/page-body.ts'
import { createTextWriter } from '../bodies/write-text.ts'
import { createWholeWriter } from '../bodies/write-whole.ts'
import type { DirectRoute, DirectServer } from '../problems/serve-directly.ts'
import type { CoalescedResponse } from './coalesce-requests.ts'
import { type FastPathRequest, parseFastPathRequest } from './fast-path-request.ts'
import { listingPaths } from './list-media.ts'

// Clients poll listings more often than anything else, and the hooks, routing and replies of the framework cost as much
// as the listing itself. So a GET of a listing without a body bypasses the framework. A test compares the responses of
// both paths byte by byte.

interface Parts {
  readonly respondToListing: (request: FastPathRequest) => Promise<CoalescedResponse>
  readonly direct: DirectServer
  /** While the service stops, responses must close their connections, which the framework does. */
  readonly isStopping: () => boolean
}

const routes = listingPaths.map((url) => ({ url, problemHeaders: {} }))

/** Responds to plain listings directly and passes all other requests to `framework`. */
export function createListingFastPath(parts: Parts, framework: RequestListener): RequestListener {
  const { respondToListing, direct, isStopping } = parts
  const writeWhole = createWholeWriter()
  const writeText = createTextWriter()
  return (request, response) => {
    const listing = isStopping() ? null : parseFastPathRequest(request)
    const route = listing && listingRoute(listing.url)
    if (!listing || !route) return framework(request, response)
    const id = direct.begin(route, request, response)
    if (id === null) return
    void direct.run(route, request, response, id, async () => {
      const { status, head, cors, body } = await respondToListing(listing)
      const whole = body?.whole ?? null
      if (whole !== null && cors.length === 0)
        return typeof whole === 'string'
          ? writeText(request, response, head, whole)
          : writeWhole(request, response, head, whole)
      response.writeHead(status, cors.length === 0 ? head : [...cors, ...head])
      if (body === null) response.end()
      else if (whole !== null) response.end(whole)
      else await writeBody(response, body)
    })
  }
}

function listingRoute(url: string): DirectRoute | undefined {
  const query = url.indexOf('?')
  const path = query === -1 ? url : url.slice(0, query)
  return routes.find((route) => route.url === path)
}

/** Bytes that one response writes in one event-loop tick: a fast client would receive megabytes before others are served. */
const bytesPerTick = 256 * 1024

/** Writes the chunks as the client reads them; stops without an error when the connection closes. */
async function writeBody(response: ServerResponse, { chunks }: PageBody): Promise<void> {
  const closed = new AbortController()
  response.once('close', () => closed.abort())
  const { signal } = closed
  try {
    let written = 0
    for (const chunk of chunks()) {
      if (!response.write(chunk)) await once(response, 'drain', { signal })
      written += chunk.length
      if (written < bytesPerTick) continue
      written = 0
      await setImmediate(undefined, { signal })
    }
    response.end()
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
