import type { FastifyRequest } from 'fastify'
import { requireScope } from '../access/require-scope.ts'
import type { Grant } from '../catalog/catalog.ts'
import type { Scope } from '../core/scopes.ts'
import { authorizationOf, bearerToken } from './bearer.ts'

/** Who asks, when the token is good for `scope`, or at all where that is null, at this moment; throws the Fault that says why not. */
export type Authorise = (request: Pick<FastifyRequest, 'raw'>, scope: Scope | null) => Promise<Grant>

/** The same for whoever knows the header already. */
export type AuthoriseHeader = (authorization: string, scope: Scope | null) => Promise<Grant>

export function createAuthoriseHeader(verifyToken: (token: string) => Promise<Grant>): AuthoriseHeader {
  return async (authorization, scope) => {
    const grant = await verifyToken(bearerToken(authorization))
    if (scope !== null) requireScope(grant, scope)
    return grant
  }
}

export const createAuthorise =
  (authoriseHeader: AuthoriseHeader): Authorise =>
  async (request, scope) =>
    authoriseHeader(authorizationOf(request.raw), scope)
