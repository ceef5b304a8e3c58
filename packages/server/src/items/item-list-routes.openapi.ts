import { Type } from 'typebox'
import { exampleBase, type OperationDescription } from '../http/openapi/description.ts'
import { ItemListQuery, LabelsQuery } from '../http/openapi/parameters.ts'
import { otherItem, sampleItem } from '../http/openapi/samples.ts'
import { ItemList, LabelList, NumberedItems } from '../http/openapi/schemas.ts'

export const listItems: OperationDescription = {
  operationId: 'listItems',
  tag: 'Listing',
  summary: 'List media objects',
  description: `Returns media objects. The cost does not depend on the size of the bucket. To read a whole bucket, send \`next_cursor\` as \`after\` until it is
null: every item that exists during the whole iteration is returned exactly once. With filters, a response can have fewer items than \`limit\`, or
none, and a \`next_cursor\`.

With \`page\` or \`per_page\` the response is a numbered page (NumberedItems) instead, in the form of Laravel’s resources.

With \`Accept: application/x-ndjson\` one response contains all remaining items, one media object on each line. The responses below leave it out,
so that generated clients have one type for a list.`,
  rules: 'K1 to K14, K16 to K21 and H10',
  needs: 'media:read',
  query: ItemListQuery,
  headers: ['Accept', 'If-None-Match', 'Accept-Encoding'],
  responses: {
    200: {
      description: 'The items.',
      headers: ['ETag', 'Cache-Control', 'Vary', 'Content-Encoding', 'Link'],
      content: {
        'application/json': {
          schema: Type.Union([ItemList, NumberedItems]),
          examples: {
            'first of several': {
              data: [sampleItem, otherItem],
              next_cursor: 'kXk2mP0vQ3xLMTIwMy4xNzkwMDAwMDAwMDAw',
            },
            'empty bucket': { data: [], next_cursor: null },
            'numbered page': {
              data: [sampleItem],
              links: {
                first: `${exampleBase}/api/items?per_page=1&page=1`,
                last: `${exampleBase}/api/items?per_page=1&page=2`,
                prev: null,
                next: `${exampleBase}/api/items?per_page=1&page=2`,
              },
              meta: {
                ...{ current_page: 1, from: 1, last_page: 2, path: `${exampleBase}/api/items` },
                ...{ per_page: 1, to: 1, total: 2 },
              },
            },
          },
        },
      },
    },
    304: {
      description: 'The list has not changed since the response with this tag.',
      headers: ['ETag', 'Cache-Control', 'Vary'],
    },
  },
  problems: ['parameter-malformed', 'cursor-malformed', 'streams-too-many'],
  head: true,
  curl: `curl -H "Authorization: Bearer $TOKEN" '${exampleBase}/api/items?order=newest&limit=200'`,
}

export const listLabels: OperationDescription = {
  operationId: 'listLabels',
  tag: 'Listing',
  summary: 'List labels',
  description: `Returns the keys of the labels of the items, and for each the most frequent values with the number of their items, for
filters. The numbers include items that have expired and are not removed yet.`,
  rules: 'K15',
  needs: 'media:read',
  query: LabelsQuery,
  responses: {
    200: {
      description: 'The labels.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: LabelList,
          examples: {
            'one key': {
              data: [{ key: 'album', values: [{ value: '42', items: 1204 }], has_more: false }],
              has_more: false,
            },
          },
        },
      },
    },
  },
  problems: ['parameter-malformed'],
  curl: `curl -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/labels`,
}
