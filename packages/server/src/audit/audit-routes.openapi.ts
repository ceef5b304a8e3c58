import { EventList, EventListQuery } from '../http/openapi/audit-schemas.ts'
import { exampleBase, type OperationDescription } from '../http/openapi/description.ts'

export const listEvents: OperationDescription = {
  operationId: 'listEvents',
  tag: 'Service',
  summary: 'List the events of the audit log',
  description: `Returns the events of the audit log, earliest first. To follow the log, send \`next_cursor\` as \`after\`: each event is returned once.
The token needs \`media:read\` too, because events have the names of files.`,
  rules: 'Y9',
  needs: 'buckets:manage',
  query: EventListQuery,
  responses: {
    200: {
      description: 'The events.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: EventList,
          examples: {
            'one event': {
              data: [
                {
                  ...{ uid: '3665920000000000', time: '2026-11-20T08:00:00.000Z', action: 'token-create' },
                  ...{ bucket: 'photos', target: 'tok_4k9m2x7c1v8q', name: 'web', size: null },
                  detail: { scopes: ['media:read'], expires_at: null },
                  actor: {
                    ...{ kind: 'client', token_id: 'tok_9x2c7v1m4k8q', subject: null },
                    ...{ address: '192.0.2.7', request_id: '6f2c7f0e6f0a4f6e9d0a0c8e5d1b7a31' },
                  },
                },
              ],
              next_cursor: '3665920000000000',
              has_more: false,
            },
          },
        },
      },
    },
  },
  problems: ['parameter-malformed', 'cursor-malformed', 'bucket-unknown'],
  curl: `curl -H "Authorization: Bearer $TOKEN" '${exampleBase}/api/audit?since=2026-11-01T00:00:00Z'`,
}
