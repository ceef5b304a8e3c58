import type { FastifyInstance } from 'fastify'
import { listTokens } from '../../access/list-tokens.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { parseTokenListQuery } from '../../core/token-list-query.ts'
import { exampleBase, type OperationDescription, routeOptions } from '../openapi/operation-description.ts'
import { sampleToken } from '../openapi/samples.ts'
import { TokenList, TokenListQuery } from '../openapi/token-schemas.ts'
import type { Authorizer } from './authorizer.ts'

/** `GET /api/tokens` (docs/interface.md T4). */
export function listTokensRoute(
  app: FastifyInstance,
  parts: { readonly authorize: Authorizer; readonly catalog: Pick<Catalog, 'token' | 'tokensAfter'> },
): void {
  const { authorize, catalog } = parts
  app.get<{ Querystring: Record<string, unknown> }>(
    '/api/tokens',
    routeOptions(description),
    async (request, reply) => {
      const grant = await authorize(request, 'tokens:manage')
      const list = await listTokens(catalog, grant, parseTokenListQuery(request.query))
      return reply.header('cache-control', 'no-store').send(list)
    },
  )
}

const description: OperationDescription = {
  operationId: 'listTokens',
  tag: 'Tokens',
  summary: 'List the tokens of the bucket',
  description: 'Returns the properties of the bucket’s tokens, also of expired and revoked ones.',
  rules: 'T4',
  needs: 'tokens:manage',
  query: TokenListQuery,
  responses: {
    200: {
      description: 'The tokens.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: TokenList,
          examples: {
            'one token': {
              data: [{ ...sampleToken, last_used_at: '2026-11-20T08:00:00.000Z', revoked_at: null }],
              next_cursor: null,
            },
          },
        },
      },
    },
  },
  problems: ['parameter-malformed', 'cursor-malformed'],
  curl: `curl -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/tokens`,
}
