import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { PageBody } from '../../media/listing/page-body.ts'
import { exampleBase, type OperationDescription, routeOptions } from '../openapi/operation-description.ts'
import { ListingQuery } from '../openapi/request-schemas.ts'
import { emptyPage, samplePage } from '../openapi/samples.ts'
import { Page } from '../openapi/schemas.ts'
import type { Authorizer } from '../tokens/authorizer.ts'
import type { ListingResponder } from './listing-response.ts'

/** The four paths of the listing (docs/interface.md L1). */
export const listingPaths = ['/api/media', '/api/media/', '/v1/media', '/v1/media/']

/** `GET` and `HEAD` of the listing, for the requests that do not take the fast path (fast-path.ts). */
export function listMediaRoute(
  app: FastifyInstance,
  parts: { readonly authorize: Authorizer; readonly respondToListing: ListingResponder },
): void {
  const { authorize, respondToListing } = parts
  for (const url of listingPaths) {
    app.route({
      method: ['GET', 'HEAD'],
      url,
      ...routeOptions(description),
      handler: async (request, reply) => {
        const grant = await authorize(request, 'media:read')
        const { status, head, body } = await respondToListing(grant, {
          url: request.raw.url ?? '',
          acceptEncoding: request.headers['accept-encoding'],
          ifNoneMatch: request.headers['if-none-match'],
        })
        for (let i = 1; i < head.length; i += 2) reply.header(head[i - 1] ?? '', head[i])
        return sendPage(reply.code(status), body)
      },
    })
  }
}

/** Streams the chunks as the client reads them, so that slow readers need no copy of the page. */
function sendPage(reply: FastifyReply, body: PageBody | null): FastifyReply {
  if (body === null || reply.request.method === 'HEAD') return reply.send()
  const { whole } = body
  return reply.send(whole === null ? Readable.from(body.chunks(), { objectMode: false }) : whole)
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
