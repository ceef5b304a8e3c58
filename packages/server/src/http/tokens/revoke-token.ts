import type { FastifyInstance } from 'fastify'
import { revokeToken } from '../../access/revoke-token.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { exampleBase, type OperationDescription, routeOptions } from '../openapi/operation-description.ts'
import { sampleCreatedToken } from '../openapi/samples.ts'
import { TokenParams } from '../openapi/token-schemas.ts'
import type { Authorizer } from './authorizer.ts'

/** `DELETE /api/tokens/{id}` (docs/interface.md T7). */
export function revokeTokenRoute(
  app: FastifyInstance,
  parts: { readonly authorize: Authorizer; readonly catalog: Pick<Catalog, 'revokeToken' | 'token'> },
): void {
  const { authorize, catalog } = parts
  app.delete<{ Params: TokenParams }>(
    '/api/tokens/:id',
    routeOptions(description),
    async (request, reply) => {
      const grant = await authorize(request, 'tokens:manage')
      await revokeToken(catalog, grant, request.params.id, Date.now(), grant.actor)
      return reply.code(204).send()
    },
  )
}

const description: OperationDescription = {
  operationId: 'revokeToken',
  tag: 'Tokens',
  summary: 'Revoke a token',
  description:
    'Every later request with the token gets a 401 problem. A token can revoke itself. Repeated requests get the same response.',
  rules: 'T7',
  needs: 'tokens:manage',
  path: TokenParams,
  responses: { 204: { description: 'Revoked.' } },
  problems: ['managed-token-unknown', 'storage-full'],
  curl: `curl -X DELETE -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/tokens/${sampleCreatedToken.id}`,
}
