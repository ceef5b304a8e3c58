import { type Description, exampleBase } from '../openapi/description.ts'
import { BucketObject } from '../schemas.ts'

export const describeBucket: Description = {
  operationId: 'describeBucket',
  tag: 'Items',
  summary: 'Look at the bucket',
  description:
    'What the bucket of the token holds, what unfinished uploads have reserved, and what it may hold at the most.',
  rules: 'Q1 to Q4',
  needs: 'media:read',
  answers: {
    200: {
      description: 'The bucket.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: BucketObject,
          examples: {
            'with a limit of bytes': {
              name: 'default',
              items: 1204,
              bytes: 5_431_288_190,
              reserved_items: 1,
              reserved_bytes: 700_000_000,
              max_items: null,
              max_bytes: 10_000_000_000,
            },
          },
        },
      },
    },
  },
  problems: [],
  curl: `curl -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/bucket`,
}
