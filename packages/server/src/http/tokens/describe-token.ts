import type { FastifyInstance } from 'fastify'
import { describeToken } from '../../access/describe-token.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { exampleBase, type OperationDescription, routeOptions } from '../openapi/operation-description.ts'
import { sampleToken } from '../openapi/samples.ts'
import { TokenObject } from '../openapi/token-schemas.ts'
import type { Authorizer } from './authorizer.ts'

/** `GET /api/token`: the properties of the caller's token (docs/interface.md T1 to T3). */
export function describeTokenRoute(
  app: FastifyInstance,
  { authorize, catalog }: { authorize: Authorizer; catalog: Pick<Catalog, 'token'> },
): void {
  app.get('/api/token', routeOptions(description), async (request, reply) => {
    const grant = await authorize(request, null)
    return reply.header('cache-control', 'no-store').send(await describeToken(catalog, grant))
  })
}

const description: OperationDescription = {
  operationId: 'describeToken',
  tag: 'Tokens',
  summary: 'Get the token’s properties',
  description:
    'Returns the bucket, the scopes and the expiry of the request’s token, never the token or its hash.',
  rules: 'T1 to T3',
  needs: 'any token',
  responses: {
    200: {
      description: 'The token.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: TokenObject,
          examples: {
            'read-only': sampleToken,
          },
        },
      },
    },
  },
  problems: [],
  curl: `curl -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/token`,
}
