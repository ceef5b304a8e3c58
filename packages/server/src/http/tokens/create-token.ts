import type { FastifyInstance } from 'fastify'
import { grantToken } from '../../access/grant-token.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { jsonBodyProblems } from '../bodies/read-json.ts'
import { leaveBodiesUnread } from '../bodies/unread-bodies.ts'
import { exampleBase, type OperationDescription, routeOptions } from '../openapi/operation-description.ts'
import { sampleCreatedToken } from '../openapi/samples.ts'
import { CreatedToken, NewTokenBody } from '../openapi/token-schemas.ts'
import type { AuthorizedJsonReader } from './read-authorized-json.ts'
import { newTokenMembers, readNewToken } from './token-body.ts'

/** `POST /api/tokens` (docs/interface.md T6). */
export async function createTokenRoute(
  app: FastifyInstance,
  parts: {
    readonly readAuthorizedJson: AuthorizedJsonReader
    readonly catalog: Pick<Catalog, 'grantToken' | 'token'>
  },
): Promise<void> {
  const { readAuthorizedJson, catalog } = parts
  leaveBodiesUnread(app)
  app.post('/api/tokens', routeOptions(description), async (request, reply) => {
    const { caller, body } = await readAuthorizedJson(request, 'tokens:manage', newTokenMembers)
    const now = Date.now()
    const created = await grantToken(catalog, caller, readNewToken(body, now), now, caller.actor)
    return reply.code(201).header('cache-control', 'no-store').send(created)
  })
}

const description: OperationDescription = {
  operationId: 'createToken',
  tag: 'Tokens',
  summary: 'Create a token',
  description:
    'Creates a token of the same bucket. Its scopes are among those of the request’s token. Only this response has the token itself.',
  rules: 'T6',
  needs: 'tokens:manage',
  body: {
    description: 'The properties of the token.',
    content: {
      'application/json': {
        schema: NewTokenBody,
        examples: {
          'read-only, until 2030': {
            name: 'backup',
            scopes: ['media:read'],
            expires_at: '2030-01-01T00:00:00Z',
          },
        },
      },
    },
  },
  responses: {
    201: {
      description: 'Created.',
      headers: ['Cache-Control'],
      content: {
        'application/json': { schema: CreatedToken, examples: { 'read-only': sampleCreatedToken } },
      },
    },
  },
  problems: [...jsonBodyProblems, 'storage-full'],
  curl: `curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
  -d '{"name": "backup", "scopes": ["media:read"]}' ${exampleBase}/api/tokens`,
}
