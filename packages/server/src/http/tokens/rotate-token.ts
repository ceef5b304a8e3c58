import type { FastifyInstance } from 'fastify'
import { rotateToken } from '../../access/rotate-token.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { jsonBodyProblems } from '../bodies/read-json.ts'
import { leaveBodiesUnread } from '../bodies/unread-bodies.ts'
import { exampleBase, type OperationDescription, routeOptions } from '../openapi/operation-description.ts'
import { sampleCreatedToken } from '../openapi/samples.ts'
import { CreatedToken, TokenParams, TokenRotation } from '../openapi/token-schemas.ts'
import type { AuthorizedJsonReader } from './read-authorized-json.ts'
import { readRotation, rotationMembers } from './token-body.ts'

/** `POST /api/tokens/{id}/rotate` (docs/interface.md T8). */
export async function rotateTokenRoute(
  app: FastifyInstance,
  parts: {
    readonly readAuthorizedJson: AuthorizedJsonReader
    readonly catalog: Pick<Catalog, 'rotateToken' | 'token'>
  },
): Promise<void> {
  const { readAuthorizedJson, catalog } = parts
  leaveBodiesUnread(app)
  app.post<{ Params: TokenParams }>(
    '/api/tokens/:id/rotate',
    routeOptions(description),
    async (request, reply) => {
      const { caller, body } = await readAuthorizedJson(request, 'tokens:manage', rotationMembers)
      const now = Date.now()
      const rotation = readRotation(body, now)
      const created = await rotateToken(catalog, caller, request.params.id, rotation, now, caller.actor)
      return reply.code(201).header('cache-control', 'no-store').send(created)
    },
  )
}

const description: OperationDescription = {
  operationId: 'rotateToken',
  tag: 'Tokens',
  summary: 'Replace a token',
  description: `Creates a token with the name and the scopes of this one, which remains valid for the overlap: time to give the new
token to its users. A token can replace itself. The token of the request must have all scopes of the replaced one.`,
  rules: 'T8',
  needs: 'tokens:manage',
  path: TokenParams,
  body: {
    description: 'How the token is replaced.',
    content: {
      'application/json': {
        schema: TokenRotation,
        examples: { 'an overlap of one hour': { overlap_seconds: 3600, expires_at: '2030-01-01T00:00:00Z' } },
      },
    },
  },
  responses: {
    201: {
      description: 'The new token.',
      headers: ['Cache-Control'],
      content: {
        'application/json': { schema: CreatedToken, examples: { 'read-only': sampleCreatedToken } },
      },
    },
  },
  problems: [...jsonBodyProblems, 'managed-token-unknown', 'managed-token-inactive', 'storage-full'],
  curl: `curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
  -d '{"expires_at": null}' ${exampleBase}/api/tokens/${sampleCreatedToken.id}/rotate`,
}
