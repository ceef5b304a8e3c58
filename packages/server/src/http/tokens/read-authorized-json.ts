import type { FastifyRequest } from 'fastify'
import type { Scope } from '../../core/scopes.ts'
import type { BodyReader } from '../bodies/body-reader.ts'
import { type JsonObject, readJsonObject } from '../bodies/read-json.ts'
import type { Authorizer, Caller } from './authorizer.ts'

/**
 * Verifies the token of a request as an Authorizer, and reads its body as readJsonObject. The token is verified before the body is
 * read and again afterwards, because it can be revoked or expire while the body arrives (docs/interface.md A7, A9).
 */
export type AuthorizedJsonReader = (
  request: Pick<FastifyRequest, 'raw' | 'id'>,
  scope: Scope,
  members: readonly string[],
  types?: readonly string[],
) => Promise<{ readonly caller: Caller; readonly body: JsonObject }>

export const createAuthorizedJsonReader =
  (authorize: Authorizer, readBody: BodyReader): AuthorizedJsonReader =>
  async (request, scope, members, types) => {
    await authorize(request, scope)
    const body = await readJsonObject(request.raw, readBody, members, types)
    return { body, caller: await authorize(request, scope, { isCounted: true }) }
  }
