import { exampleBase, type OperationDescription } from '../http/openapi/description.ts'
import { ListingQuery } from '../http/openapi/parameters.ts'
import { emptyPage, samplePage } from '../http/openapi/samples.ts'
import { Page } from '../http/openapi/schemas.ts'

export const listMedia: OperationDescription = {
  operationId: 'listMedia',
  tag: 'Listing',
  summary: 'List the bucket',
  description: `Returns one page of at most ten URLs in the order of upload, oldest first; \`GET /api/items\` has other sizes. To read a whole bucket, follow
\`next_page_url\` until it is null. To poll it, send the \`ETag\` of the last response in \`If-None-Match\`.`,
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
