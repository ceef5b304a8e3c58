import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { FastifyBaseLogger } from 'fastify'
import type { PageBody } from '../media/page-body.ts'
import type { CorsHeaders } from './cors.ts'
import { faultOf } from './error-answers.ts'
import type { AnswerListing } from './listing-answer.ts'
import { problemHeaders, problemKinds, problemOf } from './problems.ts'
import type { RecordRequest } from './request-log.ts'
import { requireHost } from './require-host.ts'
import { listingPaths } from './routes/list-media.ts'

// Listing is what the service exists for, and polled more than anything else is asked. Hooks, routing and replies
// of the framework cost as much again as the answer itself. So its plain form, a GET without a body, goes straight
// from the socket to the operation; everything else takes the framework's way, and a test holds both to the same bytes.

interface Parts {
  readonly answerListing: AnswerListing
  readonly recordRequest: RecordRequest
  readonly corsHeaders: CorsHeaders
  readonly baseUrl: string
  readonly log: FastifyBaseLogger
}

/** Puts the straight way before `others`. */
export function listingLane(parts: Parts, others: RequestListener): RequestListener {
  const { answerListing, recordRequest, corsHeaders, baseUrl, log } = parts

  async function list(request: IncomingMessage, response: ServerResponse, route: string): Promise<void> {
    const id = randomUUID()
    recordRequest({ id, method: 'GET', url: request.url ?? '', route }, response)
    try {
      requireHost({ raw: request })
      const { status, headers, body } = await answerListing(request)
      response.writeHead(status, { ...corsHeaders(request.headers), ...headers })
      if (body === null) response.end()
      else await write(response, body)
    } catch (error) {
      const fault = faultOf(error)
      if (problemKinds[fault.code].status >= 500)
        log.error({ requestId: id, err: fault.cause ?? fault }, fault.message)
      if (response.headersSent) return void response.destroy()
      const problem = problemOf(fault, baseUrl, id)
      const bytes = JSON.stringify(problem)
      response.writeHead(problem.status, {
        ...corsHeaders(request.headers),
        ...problemHeaders(fault),
        'content-type': 'application/problem+json',
        'content-length': Buffer.byteLength(bytes),
      })
      response.end(bytes)
    }
  }

  return (request, response) => {
    const route = isPlain(request) ? routeOf(request.url ?? '') : undefined
    if (route === undefined) others(request, response)
    else void list(request, response, route)
  }
}

const isPlain = ({ method, headers }: IncomingMessage): boolean =>
  method === 'GET' &&
  headers['content-length'] === undefined &&
  headers['transfer-encoding'] === undefined &&
  headers.expect === undefined

function routeOf(url: string): string | undefined {
  const query = url.indexOf('?')
  const path = query === -1 ? url : url.slice(0, query)
  return listingPaths.find((known) => known === path)
}

/** Chunk by chunk as the client takes them; gives up quietly when it goes away. */
async function write(response: ServerResponse, { whole, chunks }: PageBody): Promise<void> {
  if (whole !== null) return void response.end(whole)
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  try {
    for (const chunk of chunks()) {
      if (!response.write(chunk)) await once(response, 'drain', { signal: gone.signal })
    }
    response.end()
  } catch (error) {
    if (!gone.signal.aborted) throw error
  }
}
