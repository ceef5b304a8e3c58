import { type Description, exampleBase } from '../openapi/description.ts'
import { emptyPage, samplePage } from '../openapi/samples.ts'
import { ListingQuery, Page } from '../schemas.ts'

export const listMedia: Description = {
  operationId: 'listMedia',
  tag: 'Listing',
  summary: 'List the bucket',
  description: `One page of at most ten URLs, in the order of their upload, oldest first. \`total\` is exact and belongs to the same
snapshot as \`data\`. \`links\` holds one entry for every page, or a window around the current one where the deployment says so.

To read a whole bucket, follow \`next_page_url\` until it is null. To poll it, send the \`ETag\` of the last answer in
\`If-None-Match\`: an unchanged bucket is a 304. A page past the end is a 200 with empty \`data\`.`,
  rules: 'L1 to L18',
  needs: 'media:read',
  query: ListingQuery,
  headers: ['If-None-Match', 'Accept-Encoding'],
  answers: {
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
      description: 'Nothing has changed since the answer with this tag.',
      headers: ['ETag', 'Cache-Control', 'Vary'],
    },
  },
  problems: ['page-malformed'],
  head: true,
  curl: `curl -H "Authorization: Bearer $TOKEN" '${exampleBase}/api/media?page=2'`,
}
