import type { FastifyInstance } from 'fastify'
import { describeToken } from '../../access/describe-token.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { Authorise } from '../caller.ts'
import { describeToken as description } from '../descriptions/describe-token.ts'
import { described } from '../openapi/description.ts'

/** `GET /api/token`: what the caller's token is (docs/interface.md T1 to T3). */
export function describeTokenRoute(
  app: FastifyInstance,
  { authorise, catalog }: { authorise: Authorise; catalog: Pick<Catalog, 'token'> },
): void {
  app.get('/api/token', described(description), async (request, reply) => {
    const grant = await authorise(request, null)
    return reply.header('cache-control', 'no-store').send(await describeToken(catalog, grant))
  })
}
