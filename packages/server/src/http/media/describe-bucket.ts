import type { FastifyInstance } from 'fastify'
import type { Catalog } from '../../catalog/catalog.ts'
import { requireFewExpired } from '../../core/item-expiry.ts'
import { describeBucket } from '../../media/describe-bucket.ts'
import { exampleBase, type OperationDescription, routeOptions } from '../openapi/operation-description.ts'
import { BucketObject } from '../openapi/schemas.ts'
import type { Authorizer } from '../tokens/authorizer.ts'

/** `GET /api/bucket`: the contents and the quota of the caller's bucket (docs/interface.md Q3). */
export function describeBucketRoute(
  app: FastifyInstance,
  { authorize, catalog }: { authorize: Authorizer; catalog: Pick<Catalog, 'bucket' | 'trashState'> },
): void {
  app.get('/api/bucket', routeOptions(description), async (request, reply) => {
    const { bucketId, expired } = await authorize(request, 'media:read')
    requireFewExpired(expired)
    return reply.header('cache-control', 'no-store').send(await describeBucket(catalog, bucketId))
  })
}

const description: OperationDescription = {
  operationId: 'describeBucket',
  tag: 'Items',
  summary: 'Get the bucket',
  description:
    'Returns the contents of the token’s bucket, the reservations of unfinished uploads, and the quota.',
  rules: 'Q1 to Q4, Z1, H1 and E1',
  needs: 'media:read',
  responses: {
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
              trash_days: 30,
              trash_items: 3,
              trash_bytes: 7_340_021,
              private: false,
              signed_pages: false,
              remove_metadata: false,
              item_days: null,
            },
          },
        },
      },
    },
  },
  problems: [],
  curl: `curl -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/bucket`,
}
