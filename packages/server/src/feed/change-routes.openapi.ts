import { exampleBase, type OperationDescription } from '../http/openapi/description.ts'
import { ChangesQuery } from '../http/openapi/parameters.ts'
import { sampleItem } from '../http/openapi/samples.ts'
import { ChangeList } from '../http/openapi/schemas.ts'

export const listChanges: OperationDescription = {
  operationId: 'listChanges',
  tag: 'Listing',
  summary: 'Follow the changes of the bucket',
  description: `Returns what happened to the items of the bucket, in order, each change once, with the media object as it is now.

To mirror a bucket, request \`since=now\`, list all items with \`GET /api/items\`, and then follow the changes: send \`next_cursor\` as \`after\`, with \`wait\`
to receive changes as they happen. With \`Accept: text/event-stream\` the changes are Server-Sent Events, whose \`id\` is the cursor.`,
  rules: 'FE1 to FE9',
  needs: 'media:read',
  query: ChangesQuery,
  headers: ['Accept', 'Last-Event-ID'],
  responses: {
    200: {
      description: 'The changes.',
      headers: ['Cache-Control', 'Vary'],
      content: {
        'application/json': {
          schema: ChangeList,
          examples: {
            'one change': {
              data: [
                {
                  cursor: 'kXk2mP0vQ3xLMTIwMw',
                  type: 'added',
                  item_id: sampleItem.id,
                  changed_at: '2026-11-01T09:30:00.000Z',
                  item: sampleItem,
                },
              ],
              next_cursor: 'kXk2mP0vQ3xLMTIwMw',
              has_more: false,
            },
            'no change': { data: [], next_cursor: 'kXk2mP0vQ3xLMTIwMw', has_more: false },
          },
        },
      },
    },
  },
  problems: ['parameter-malformed', 'cursor-malformed', 'cursor-expired', 'streams-too-many'],
  head: true,
  curl: `curl -H "Authorization: Bearer $TOKEN" '${exampleBase}/api/changes?since=now'`,
}
