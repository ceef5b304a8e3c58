import type { IncomingMessage } from 'node:http'
import { Fault, TokenFault } from '../core/faults.ts'
import {
  hashToken,
  isServiceToken,
  isWellFormedToken,
  requireScope,
  type ServiceScope,
} from '../core/token-rules.ts'
import type { AuthorizationVerifier, ServiceAuthorizer, VerifiedGrant } from '../http/authorizer.ts'
import { parseBearerToken, requireAuthorization } from '../http/headers.ts'
import type { ClientAddresses, RequestLimits } from '../http/limits.ts'
import type { ServiceGrant } from '../storage/catalog/access/service-tokens.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import {
  actorOf,
  type RemoveExpired,
  recordUseOperation,
  removeExpiredOf,
  requireValid,
  tokenMalformed,
  tokenUnknown,
} from './token-operations.ts'

export type ServiceVerifier = ReturnType<typeof verifyServiceTokenOperation>

/**
 * Looks up a service token for each request, with the bucket of this name, if one is given: as verifyToken, and with the same faults. The token is
 * valid for `grace` milliseconds after its expiry.
 */
export function verifyServiceTokenOperation(parts: {
  readonly catalog: Pick<Catalog, 'findServiceGrant' | 'touchToken'>
  readonly removeExpired: RemoveExpired
  readonly now: () => number
  /** As that of verifyTokenOperation. */
  readonly onTouchFailure: (error: unknown) => void
}) {
  const { catalog, removeExpired, now } = parts
  const recordUse = recordUseOperation(parts)

  async function verify(token: string, bucket: string | null, grace = 0): Promise<ServiceGrant> {
    const found = await catalog.findServiceGrant(hashToken(token), bucket)
    if (found === null) throw isWellFormedToken(token) ? tokenUnknown() : tokenMalformed()
    const at = now()
    requireValid(found, at, grace)
    recordUse(found, at)
    return found
  }

  return {
    verify,
    /** What the token grants in the bucket that a request names. Throws Fault `bucket-required` and `bucket-unknown` too (docs/interface.md ST2). */
    async verifyInBucket(token: string, bucket: string | undefined, grace = 0): Promise<VerifiedGrant> {
      const { tokenId, ofBucket: grant } = await verify(token, bucket ?? null, grace)
      if (bucket === undefined) throw new TokenFault(bucketRequired(), tokenId)
      if (grant === null) throw new TokenFault(bucketUnknown(), tokenId)
      const at = now()
      const isExpired = grant.expiresAt !== null && grant.expiresAt <= at
      return removeExpiredOf(isExpired ? { ...grant, isExpired } : grant, removeExpired, at)
    },
  }
}

const bucketRequired = (): Fault =>
  new Fault(
    'bucket-required',
    'A service token belongs to no bucket: name one in the header `Mediabucket-Bucket`.',
  )

const bucketUnknown = (): Fault => new Fault('bucket-unknown', 'This service has no bucket of this name.')

/** Requires that a request with a token of a bucket names no other bucket (docs/interface.md ST3). Throws Fault `bucket-forbidden`. */
export const requireOwnBucketOperation =
  (catalog: Pick<Catalog, 'bucket'>) =>
  async ({ tokenId, bucketId }: Pick<VerifiedGrant, 'tokenId' | 'bucketId'>, name: string): Promise<void> => {
    const own = await catalog.bucket(bucketId)
    if (own?.name === name) return
    // The same for buckets that exist and for others, so that it shows nothing about them.
    throw new TokenFault(
      new Fault(
        'bucket-forbidden',
        'The header `Mediabucket-Bucket` does not name the bucket of this token.',
      ),
      tokenId,
    )
  }

/** Verifies the token of a request for the whole service (docs/interface.md ST5). Tokens of buckets lack its scopes. */
export const createServiceAuthorizer =
  (
    { verify }: Pick<ServiceVerifier, 'verify'>,
    verifyAuthorization: AuthorizationVerifier,
    { countToken }: Pick<RequestLimits, 'countToken'>,
    { wholeOfRequest }: Pick<ClientAddresses, 'wholeOfRequest'>,
  ): ServiceAuthorizer =>
  async ({ request, id, line }, scope, { isCounted = false } = {}) => {
    const authorization = requireAuthorization(request)
    const token = parseBearerToken(authorization)
    const grant = isServiceToken(token)
      ? await verify(token, null)
      : { ...(await verifyAuthorization(authorization, undefined)), scopes: noScopes }
    const { tokenId, scopes, expiresAt } = grant
    line.token = tokenId
    const refusal = isCounted ? null : countToken(tokenId)
    if (refusal) throw refusal
    if (scope !== null) requireScope(grant, scope)
    return {
      tokenId,
      scopes,
      expiresAt,
      actor: actorOf({ tokenId, subject: null }, wholeOfRequest(request), id),
    }
  }

/** Whether a request has a service token, which may be invalid. */
export const hasServiceToken = ({ headers }: IncomingMessage): boolean =>
  isServiceToken(credentialsOf(headers.authorization ?? ''))

const credentialsOf = (authorization: string): string => authorization.replace(/^bearer +/i, '')

const noScopes: ReadonlySet<ServiceScope> = new Set()
