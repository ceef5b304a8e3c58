import type { FastifyRequest } from 'fastify'
import { requireScope } from '../../access/require-scope.ts'
import type { Grant } from '../../catalog/catalog.ts'
import type { Scope } from '../../core/scopes.ts'
import type { RequestLimits } from '../limits/request-limits.ts'
import { authorizationOf, bearerToken } from './bearer.ts'

/** Who asks, when the token is good for `scope`, or at all where that is null, at this moment; throws the Fault that says why not. */
export type Authorise = (request: Pick<FastifyRequest, 'raw'>, scope: Scope | null) => Promise<Grant>

/** The same for a header that is known already; the request is not counted, and no scope is required. */
export type VerifyHeader = (authorization: string) => Promise<Grant>

export const createVerifyHeader =
  (verifyToken: (token: string) => Promise<Grant>): VerifyHeader =>
  async (authorization) =>
    verifyToken(bearerToken(authorization))

export const createAuthorise =
  (verifyHeader: VerifyHeader, { countToken }: Pick<RequestLimits, 'countToken'>): Authorise =>
  async (request, scope) => {
    const grant = await verifyHeader(authorizationOf(request.raw))
    const limited = countToken(grant.tokenId)
    if (limited) throw limited
    if (scope !== null) requireScope(grant, scope)
    return grant
  }
