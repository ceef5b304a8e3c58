import type { FastifyInstance } from 'fastify'
import type { Catalog } from '../../catalog/catalog.ts'
import { describeBucket } from '../../media/describe-bucket.ts'
import { type Description, described, exampleBase } from '../openapi/description.ts'
import { BucketObject } from '../openapi/schemas.ts'
import type { Authorise } from '../tokens/authorise.ts'

/** `GET /api/bucket`: what the caller's bucket holds and may hold (docs/interface.md Q3). */
export function describeBucketRoute(
  app: FastifyInstance,
  { authorise, catalog }: { authorise: Authorise; catalog: Pick<Catalog, 'bucket'> },
): void {
  app.get('/api/bucket', described(description), async (request, reply) => {
    const grant = await authorise(request, 'media:read')
    return reply.header('cache-control', 'no-store').send(await describeBucket(catalog, grant.bucketId))
  })
}

const description: Description = {
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
