import type { FastifyInstance } from 'fastify'
import type { Catalog } from '../../catalog/catalog.ts'
import { describeBucket } from '../../media/describe-bucket.ts'
import type { Authorise } from '../caller.ts'
import { describeBucket as description } from '../descriptions/describe-bucket.ts'
import { described } from '../openapi/description.ts'

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
