import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { PageBody } from '../../media/listing/page-body.ts'
import type { CorsPolicy } from '../headers/cors.ts'
import type { RequestLimits } from '../limits/request-limits.ts'
import type { RequestLogger } from '../metrics/request-log.ts'
import { toFault } from '../problems/error-handler.ts'
import { problemResponse } from '../problems/problem-response.ts'
import { problemKinds } from '../problems/problems.ts'
import { type FastPathRequest, parseFastPathRequest } from './fast-path-request.ts'
import { listingPaths } from './list-media.ts'
import type { ListingResponse } from './listing-response.ts'

// Listing is what the service exists for, and polled more than anything else is asked. Hooks, routing and replies
// of the framework cost as much again as the answer itself. So its plain form, a GET without a body, goes straight
// from the socket to the operation; everything else takes the framework's way, and a test holds both to the same bytes.

interface Parts {
  readonly respondToListing: (asked: FastPathRequest) => Promise<ListingResponse>
  readonly logRequest: RequestLogger
  readonly corsHeaders: CorsPolicy
  readonly limits: Pick<RequestLimits, 'countAddress' | 'countAuthFailure'>
  /** Counts errors of the storage. */
  readonly countError: (error: unknown) => void
  readonly baseUrl: string
  readonly log: FastifyBaseLogger
  /** While stopping, answers end their connections, which the framework sees to. */
  readonly isStopping: () => boolean
}

/** Puts the straight way before `others`. */
export function createListingFastPath(parts: Parts, others: RequestListener): RequestListener {
  const { respondToListing, logRequest, corsHeaders, limits, countError, baseUrl, log, isStopping } = parts

  async function list(
    request: IncomingMessage,
    response: ServerResponse,
    route: string,
    asked: FastPathRequest,
  ): Promise<void> {
    const id = randomUUID()
    logRequest({ id, method: 'GET', url: asked.url, route }, response)
    try {
      const limited = limits.countAddress(request)
      if (limited) throw limited
      const { status, head, body } = await respondToListing(asked)
      response.writeHead(status, head)
      if (body === null) response.end()
      else await write(response, body)
    } catch (error) {
      const fault = limits.countAuthFailure(toFault(error), request)
      if (problemKinds[fault.code].status >= 500) {
        countError(fault)
        log.error({ requestId: id, err: fault.cause ?? fault }, fault.message)
      }
      if (response.headersSent) return void response.destroy()
      const { status, headers, body } = problemResponse(fault, baseUrl, id)
      response.writeHead(status, { ...corsHeaders(request.headers), ...headers })
      response.end(body)
    }
  }

  return (request, response) => {
    const asked = isStopping() ? null : parseFastPathRequest(request)
    const route = asked && routeOf(asked.url)
    if (asked && route) void list(request, response, route, asked)
    else others(request, response)
  }
}

function routeOf(url: string): string | undefined {
  const query = url.indexOf('?')
  const path = query === -1 ? url : url.slice(0, query)
  return listingPaths.find((known) => known === path)
}

/** Bytes that an answer writes before others get their turn: a quick client takes a whole page of megabytes at once. */
const bytesPerTurn = 256 * 1024

/** Chunk by chunk as the client takes them; gives up quietly when it goes away. */
async function write(response: ServerResponse, { whole, chunks }: PageBody): Promise<void> {
  // As text, head and body make one write.
  if (whole !== null) return void response.end(whole, 'latin1')
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const { signal } = gone
  try {
    let written = 0
    for (const chunk of chunks()) {
      if (!response.write(chunk)) await once(response, 'drain', { signal })
      written += chunk.length
      if (written < bytesPerTurn) continue
      written = 0
      await setImmediate(undefined, { signal })
    }
    response.end()
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
