import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import type { PageBody } from '../../media/listing/page-body.ts'
import { createTextWriter, createWholeWriter } from '../bodies/write-head.ts'
import type { HttpContext } from '../context.ts'
import { corsHead } from '../headers/cors.ts'
import { exampleBase, type OperationDescription } from '../openapi/operation-description.ts'
import { ListingQuery } from '../openapi/request-schemas.ts'
import { emptyPage, samplePage } from '../openapi/samples.ts'
import { Page } from '../openapi/schemas.ts'
import type { Operations } from '../operations.ts'
import { requireAuthorization } from '../routing/authorizer.ts'
import { type Exchange, type Route, route } from '../routing/route.ts'
import { coalesceRequests } from './coalesce-requests.ts'
import { createListingResponder } from './listing-response.ts'

/** The four paths of the listing (docs/interface.md L1). */
export const listingPaths = ['/api/media', '/api/media/', '/v1/media', '/v1/media/'] as const

/** `GET /api/media` (docs/interface.md, Listing). */
export function listingRoutes(http: HttpContext, operations: Operations): readonly Route[] {
  const respondToListing = coalesceRequests(http, createListingResponder(http, operations))
  const writeWhole = createWholeWriter()
  const writeText = createTextWriter()

  async function list({ request, response, query }: Exchange): Promise<null> {
    const { headers } = request
    const { status, head, body } = await respondToListing({
      page: query['page'],
      authorization: requireAuthorization(request),
      acceptEncoding: headers['accept-encoding'],
      ifNoneMatch: headers['if-none-match'],
    })
    const cors = corsHead(http.corsHeaders(headers))
    const isHead = request.method === 'HEAD'
    const whole = body?.whole ?? null
    if (whole === null || isHead || cors.length > 0) {
      response.writeHead(status, cors.length === 0 ? head : [...cors, ...head])
      if (body === null || isHead) response.end()
      else if (whole !== null) response.end(whole)
      else await writeBody(response, body)
    } else if (typeof whole === 'string') writeText(request, response, head, whole)
    else writeWhole(request, response, head, whole)
    return null
  }

  return listingPaths.map((path) => route('GET', path, description, list))
}

/** Bytes that one response writes in one event-loop tick: a fast client would receive megabytes before others are served. */
const bytesPerTick = 256 * 1024

/** Writes the chunks as the client reads them; stops without an error when the connection closes. */
export async function writeBody(
  response: ServerResponse,
  { chunks }: Pick<PageBody, 'chunks'>,
): Promise<void> {
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

const description: OperationDescription = {
  operationId: 'listMedia',
  tag: 'Listing',
  summary: 'List the bucket',
  description: `Returns one page of at most ten URLs in the order of upload, oldest first. \`total\` is exact and from the same
snapshot as \`data\`. \`links\` has one entry for every page, or a window around the current page if so configured.

To read a whole bucket, follow \`next_page_url\` until it is null. To poll it, send the \`ETag\` of the last response in
\`If-None-Match\`: an unchanged bucket returns 304. A page past the end is a 200 with empty \`data\`.`,
  rules: 'L1 to L18',
  needs: 'media:read',
  query: ListingQuery,
  headers: ['If-None-Match', 'Accept-Encoding'],
  responses: {
    200: {
      description: 'The page.',
      headers: ['ETag', 'Cache-Control', 'Vary', 'Content-Encoding'],
      content: {
        'application/json': {
          schema: Page,
          examples: { 'last page of two': samplePage, 'empty bucket': emptyPage },
          enveloped: true,
        },
      },
    },
    304: {
      description: 'The page has not changed since the response with this tag.',
      headers: ['ETag', 'Cache-Control', 'Vary'],
    },
  },
  problems: ['page-malformed'],
  head: true,
  curl: `curl -H "Authorization: Bearer $TOKEN" '${exampleBase}/api/media?page=2'`,
}
