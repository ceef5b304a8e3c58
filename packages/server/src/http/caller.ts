import type { FastifyRequest } from 'fastify'
import { requireScope } from '../access/require-scope.ts'
import type { Grant } from '../catalog/catalog.ts'
import type { Scope } from '../core/scopes.ts'
import { bearerToken } from './bearer.ts'

/** Who asks, when the token is good for `scope`, or at all where that is null, at this moment; throws the Fault that says why not. */
export type Authorise = (request: Pick<FastifyRequest, 'raw'>, scope: Scope | null) => Promise<Grant>

export function createAuthorise(verifyToken: (token: string) => Promise<Grant>): Authorise {
  return async (request, scope) => {
    const grant = await verifyToken(bearerToken(request.raw))
    if (scope !== null) requireScope(grant, scope)
    return grant
  }
}
