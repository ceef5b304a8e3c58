import type { IncomingMessage } from 'node:http'
import { Fault } from '../core/faults.ts'
import type { JsonObject } from '../core/json.ts'
import { type Actor, requireScope, type Scope } from '../core/tokens.ts'
import type { Grant } from '../storage/catalog/records.ts'
import { type BodyReader, readJsonObject } from './bodies.ts'
import { countHeader } from './headers.ts'
import type { ClientAddresses, RequestLimits } from './limits.ts'
import type { Exchange } from './route.ts'

/** What a verified token grants. */
export interface VerifiedGrant extends Grant {
  /**
   * Waits for changes of the catalog that precede a request that writes: the removal of expired items, so that their quota is free, and the
   * row of a new user. The token is then verified again. Requests that only read do not wait. Left out if there are none.
   */
  readonly settle?: () => Promise<void>
}

/** The caller of an operation: what its token grants, and who it is in the audit log. */
export interface Caller extends Grant {
  readonly actor: Actor
}

/**
 * Verifies the token of a request, counts the request unless it was counted before, and requires `scope`, unless that is null.
 * Returns what the token grants; throws the Fault that names the reason for a refusal.
 */
export type Authorizer = (
  exchange: Pick<Exchange, 'request' | 'id'>,
  scope: Scope | null,
  options?: {
    readonly isCounted?: boolean
    /** Milliseconds for which a token is accepted after its expiry. */
    readonly grace?: number
    /** Waits until earlier changes are done, as for a request that changes the bucket: then a new user has a row. */
    readonly isSettled?: boolean
  },
) => Promise<Caller>

/**
 * Verifies the token of an Authorization header. Does not count the request and requires no scope. A token is accepted for `grace` milliseconds
 * after its expiry.
 */
export type AuthorizationVerifier = (authorization: string, grace?: number) => Promise<VerifiedGrant>

export const createAuthorizationVerifier =
  (verifyToken: (token: string, grace?: number) => Promise<VerifiedGrant>): AuthorizationVerifier =>
  async (authorization, grace) =>
    await verifyToken(parseBearerToken(authorization), grace)

export const createAuthorizer =
  (
    verifyAuthorization: AuthorizationVerifier,
    { countToken }: Pick<RequestLimits, 'countToken'>,
    { wholeOfRequest }: Pick<ClientAddresses, 'wholeOfRequest'>,
  ): Authorizer =>
  async ({ request, id }, scope, { isCounted = false, isSettled = false, grace = 0 } = {}) => {
    const verify = () => verifyAuthorization(requireAuthorization(request), grace)
    const found = await verify()
    const grant = isSettled || writes(request.method, scope) ? await settled(found, verify) : found
    const refusal = isCounted ? null : countToken(grant.tokenId)
    if (refusal) throw refusal
    if (scope !== null) requireScope(grant, scope)
    const { tokenId, subject } = grant
    const address = wholeOfRequest(request)
    return { ...grant, actor: { kind: 'client', tokenId, subject, address, requestId: id } }
  }

/**
 * Verifies the token of a request as an Authorizer, and reads its body as readJsonObject. The token is verified before the body is
 * read and again afterwards, because it can be revoked or expire while the body arrives (docs/interface.md A7, A9).
 */
export type AuthorizedJsonReader = (
  exchange: Pick<Exchange, 'request' | 'id'>,
  scope: Scope,
  members: readonly string[],
  types?: readonly string[],
) => Promise<{ readonly caller: Caller; readonly body: JsonObject }>

export const createAuthorizedJsonReader =
  (authorize: Authorizer, readBody: BodyReader): AuthorizedJsonReader =>
  async (exchange, scope, members, types) => {
    await authorize(exchange, scope)
    const body = await readJsonObject(exchange.request, readBody, members, types)
    return { body, caller: await authorize(exchange, scope, { isCounted: true }) }
  }

/** Whether the request changes the bucket. Links are signed with the scope of reads. */
const writes = (method: string | undefined, scope: Scope | null): boolean =>
  scope !== null && scope !== 'media:read' && method !== 'GET' && method !== 'HEAD'

/** What the token grants once earlier changes are done. An item may expire while the request waits for that of others. */
async function settled(grant: VerifiedGrant, verify: () => Promise<VerifiedGrant>): Promise<VerifiedGrant> {
  let current = grant
  for (let round = 0; round < 2 && current.settle !== undefined; round += 1) {
    await current.settle()
    current = await verify()
  }
  return current
}

/** Returns the one Authorization header (docs/interface.md A4). Throws Fault where there is none or more than one. */
export function requireAuthorization(request: IncomingMessage): string {
  const header = request.headers.authorization
  if (header === undefined)
    throw new Fault('token-missing', 'Send the header `Authorization: Bearer` with a token of this bucket.')
  if (countHeader(request, 'authorization') > 1)
    throw new Fault(
      'authorization-repeated',
      'The request has more than one Authorization header; send exactly one.',
    )
  return header
}

/** Everything after the scheme is the token, spaces included: a token with spaces is malformed, not missing. */
const credentials = /^bearer +(\S.*)$/i

/** Returns the token of an Authorization header (docs/interface.md A1, A2). Throws Fault where it has none. */
function parseBearerToken(authorization: string): string {
  const token = credentials.exec(authorization)?.[1]
  if (token === undefined)
    throw new Fault('token-missing', 'The Authorization header must have the form `Bearer` and a token.')
  return token
}
