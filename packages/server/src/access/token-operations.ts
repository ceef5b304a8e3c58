import { bucketDeleted, Fault, TokenFault, tokenExpired, tokenRevoked } from '../core/faults.ts'
import type { CursorQuery } from '../core/queries.ts'
import { leftOf, limitsObject } from '../core/quotas.ts'
import { isTokenId, isUserId, newServiceTokenId, newTokenId } from '../core/token-ids.ts'
import {
  type Actor,
  hashToken,
  isScope,
  isServiceToken,
  isWellFormedToken,
  newServiceToken,
  newToken,
  requireGrantable,
  requireScope,
  type Scope,
  type ServiceScope,
} from '../core/token-rules.ts'
import type { AuthorizationVerifier, Authorizer, VerifiedGrant } from '../http/authorizer.ts'
import { namedBucket, parseBearerToken, requireAuthorization } from '../http/headers.ts'
import type { ClientAddresses, RequestLimits } from '../http/limits.ts'
import type { ValueOf } from '../http/openapi/schemas.ts'
import type * as schemas from '../http/openapi/token-schemas.ts'
import type { UsageCounter } from '../http/usage-log.ts'
import type {
  NewServiceToken,
  NewToken,
  NewTokenSecret,
  TokenRecord,
} from '../storage/catalog/access/tokens.ts'
import { hasManyExpired } from '../storage/catalog/buckets.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { BucketId, Grant, TokenId } from '../storage/catalog/records.ts'
import { keyPairOf } from './key-pairs.ts'
import type { TokenRequest as NewTokenRequest } from './new-tokens.ts'

export const tokenUnknown = (): Fault => new Fault('token-unknown', 'This service has not issued this token.')

export const tokenMalformed = (): Fault =>
  new Fault('token-malformed', 'This is not a token of this service. It may be cut off or mistyped.')

/** A token as the API represents it to its owner (docs/interface.md T1). */
type TokenObject = ValueOf<typeof schemas.TokenObject>

/** A token as the API represents it to those who manage the tokens of a bucket (docs/interface.md T4). */
type ManagedTokenObject = ValueOf<typeof schemas.TokenList>['data'][number]

/** A new token, with the token itself (docs/interface.md T6). */
export type CreatedToken = ValueOf<typeof schemas.CreatedToken>

/** The members that all tokens have. */
const commonMembers = ({ id, name, createdAt, expiresAt, note, limits }: TokenRecord) => ({
  id,
  name,
  created_at: new Date(createdAt).toISOString(),
  expires_at: timeOrNull(expiresAt),
  note,
  limits: limits && limitsObject(limits),
  uploaded: limits?.used ?? null,
  left: limits && leftOf(limits, limits),
})

const tokenObject = (token: TokenRecord): TokenObject => {
  const { id, name, ...others } = commonMembers(token)
  return { id, name, bucket: token.bucket, scopes: token.scopes, ...others }
}

/** As tokenObject, of a token that belongs to a bucket. Throws as bucketDeleted. */
function bucketTokenObject(token: TokenRecord) {
  const { id, name, ...others } = commonMembers(token)
  if (token.bucket === null) throw bucketDeleted()
  return { id, name, bucket: token.bucket, scopes: token.scopes.filter(isScope), ...others }
}

const managedMembers = ({ lastUsedAt, revokedAt }: TokenRecord) => ({
  last_used_at: timeOrNull(lastUsedAt),
  revoked_at: timeOrNull(revokedAt),
})

const managedTokenObject = (token: TokenRecord): ManagedTokenObject => ({
  ...bucketTokenObject(token),
  ...managedMembers(token),
})

/** As managedTokenObject, also of a service token, whose bucket is null. */
export const describeManagedToken = (token: TokenRecord) => ({
  ...tokenObject(token),
  ...managedMembers(token),
})

/** Reads the row of a token that has been created, with its keys for the S3 protocol if they are wanted. */
export async function createdToken(
  catalog: Pick<Catalog, 'findToken' | 'signingKeys' | 'addSigningKey'>,
  id: TokenId,
  token: string,
  wantsKeys: boolean,
): Promise<CreatedToken> {
  const record = await catalog.findToken(id)
  if (record === null) throw bucketDeleted()
  const keys = wantsKeys ? await keyPairOf(catalog, id, Date.now()) : {}
  return { ...bucketTokenObject(record), token, ...keys }
}

const timeOrNull = (time: number | null): string | null =>
  time === null ? null : new Date(time).toISOString()

/** A new token with its id. Only the hash of the token is stored (docs/interface.md A8). */
interface GeneratedToken {
  readonly token: string
  readonly row: NewTokenSecret
}

/** `now` is milliseconds since 1970. */
export function generateToken(now: number): GeneratedToken {
  const token = newToken()
  return { token, row: { id: newTokenId(), hash: hashToken(token), createdAt: now } }
}

/** As generateToken, of the service (docs/interface.md ST1). */
function generateServiceToken(now: number): GeneratedToken {
  const token = newServiceToken()
  return { token, row: { id: newServiceTokenId(), hash: hashToken(token), createdAt: now } }
}

type TokenRequest = Pick<NewToken, 'bucket' | 'name' | 'scopes' | 'expiresAt' | 'note' | 'limits'> & {
  /** Milliseconds since 1970, as `expiresAt`. */
  readonly now: number
}

interface IssuedToken {
  readonly token: string
  readonly id: TokenId
}

/** Creates a token, and its bucket if it does not exist. Only the hash of the token is stored (docs/interface.md A8). */
export async function issueToken(
  catalog: Pick<Catalog, 'addToken'>,
  { now, ...request }: TokenRequest,
): Promise<IssuedToken & { readonly isNewBucket: boolean }> {
  const { token, row } = generateToken(now)
  const isNewBucket = await catalog.addToken({ ...request, ...row })
  return { token, id: row.id, isNewBucket }
}

/** Creates a service token (docs/interface.md ST1). */
export async function issueServiceToken(
  catalog: Pick<Catalog, 'addServiceToken'>,
  {
    now,
    ...request
  }: Pick<NewServiceToken, 'name' | 'scopes' | 'expiresAt' | 'note'> & Pick<TokenRequest, 'now'>,
): Promise<IssuedToken> {
  const { token, row } = generateServiceToken(now)
  await catalog.addServiceToken({ ...request, ...row })
  return { token, id: row.id }
}

/** Creates a bucket with a token. Null if the bucket exists: of several processes, one gets the token. */
export async function issueTokenOfNewBucket(
  catalog: Pick<Catalog, 'createBucketWithToken'>,
  { now, ...request }: TokenRequest,
): Promise<IssuedToken | null> {
  const { token, row } = generateToken(now)
  return (await catalog.createBucketWithToken({ ...request, ...row })) ? { token, id: row.id } : null
}

/** Finds a token of the caller's bucket. Throws Fault `managed-token-unknown`, also for tokens of other buckets (docs/interface.md A6). */
async function findManagedToken(
  catalog: Pick<Catalog, 'findToken'>,
  grant: Pick<Grant, 'bucketId'>,
  id: string,
): Promise<TokenRecord> {
  const unknown = () => new Fault('managed-token-unknown', 'The bucket has no token with this id.')
  if (!isTokenId(id)) throw unknown()
  const token = await catalog.findToken(id)
  if (token === null || token.bucketId !== grant.bucketId) throw unknown()
  return token
}

/**
 * Reads the token of this grant. Scopes and expiry are those of the request: a user’s row has none (docs/interface.md J6). Null if there is
 * no row: the token has been removed, or another process has added the row of this new user with another id.
 */
export async function describeToken(
  catalog: Pick<Catalog, 'findToken'>,
  grant: Pick<Grant, 'tokenId' | 'expiresAt'> & { readonly scopes: ReadonlySet<ServiceScope> },
): Promise<TokenObject | null> {
  const token = await catalog.findToken(grant.tokenId)
  return token && tokenObject({ ...token, scopes: [...grant.scopes], expiresAt: grant.expiresAt })
}

/** Lists tokens of the caller's bucket, oldest first (docs/interface.md T4). Throws Fault `cursor-malformed`. */
export async function listTokens(
  catalog: Pick<Catalog, 'findToken' | 'tokensAfter'>,
  grant: Pick<Grant, 'bucketId'>,
  { after, limit }: CursorQuery,
): Promise<ValueOf<typeof schemas.TokenList>> {
  const previous = after === null ? null : await findPrevious(catalog, grant, after)
  // One more than the limit shows whether further tokens follow.
  const tokens = await catalog.tokensAfter(grant.bucketId, previous, limit + 1)
  const listed = tokens.slice(0, limit)
  return {
    data: listed.map(managedTokenObject),
    next_cursor: tokens.length > limit ? (listed.at(-1)?.id ?? null) : null,
  }
}

async function findPrevious(
  catalog: Pick<Catalog, 'findToken'>,
  grant: Pick<Grant, 'bucketId'>,
  after: string,
): Promise<TokenId> {
  try {
    return (await findManagedToken(catalog, grant, after)).id
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    throw new Fault('cursor-malformed', 'This is not a cursor of this list.', { cause: error })
  }
}

/**
 * Creates a token of the caller's bucket (docs/interface.md T6). Throws Fault `scope-missing` for scopes that the caller lacks, and
 * `token-revoked` if the caller's token has been revoked in the meantime.
 */
export async function grantToken(
  catalog: Pick<Catalog, 'grantToken' | 'findToken' | 'signingKeys' | 'addSigningKey'>,
  grant: Pick<Grant, 'tokenId' | 'bucketId'> & { readonly scopes: ReadonlySet<ServiceScope> },
  { wantsKeys, ...request }: NewTokenRequest,
  now: number,
  by: Actor,
): Promise<CreatedToken> {
  requireGrantable(grant, request.scopes)
  const { token, row } = generateToken(now)
  await catalog.grantToken(grant.bucketId, grant.tokenId, { ...request, ...row }, by)
  return createdToken(catalog, row.id, token, wantsKeys)
}

interface Rotation {
  /** Milliseconds for which the replaced token remains valid, unless it expires earlier. */
  readonly overlap: number
  /** When the successor expires: milliseconds since 1970, or null for never. */
  readonly expiresAt: number | null
}

/**
 * Creates the successor of a token, with its name and its scopes (docs/interface.md T8). Throws Fault `managed-token-unknown`,
 * `managed-token-inactive`, `scope-missing` and `token-revoked`.
 */
export async function rotateToken(
  catalog: Pick<Catalog, 'findToken' | 'rotateToken' | 'signingKeys' | 'addSigningKey'>,
  grant: Pick<Grant, 'tokenId' | 'bucketId' | 'scopes'>,
  id: string,
  { overlap, expiresAt }: Rotation,
  now: number,
  by: Actor,
): Promise<CreatedToken> {
  const replaced = await findManagedToken(catalog, grant, id)
  if (isUserId(replaced.id))
    throw new Fault(
      'managed-token-inactive',
      'This is a user of the issuer, which has no token to be replaced.',
    )
  requireGrantable(grant, replaced.scopes)
  const { token, row } = generateToken(now)
  const successor = { ...row, expiresAt, replaces: replaced.id, replacedUntil: now + overlap }
  const isRotated = await catalog.rotateToken(grant.bucketId, grant.tokenId, successor, by)
  if (!isRotated)
    throw new Fault(
      'managed-token-inactive',
      'The token has expired, has been revoked or has been replaced before. A token has one successor, which can be replaced in turn.',
    )
  return createdToken(catalog, row.id, token, false)
}

/**
 * Creates the successor of a token of a bucket or of the service, for the operator. Null if the token has expired, has been revoked or has been replaced
 * before (docs/interface.md T8, ST4).
 */
export async function replaceToken(
  catalog: Pick<Catalog, 'rotateToken' | 'rotateServiceToken'>,
  { id, bucketId }: Pick<TokenRecord, 'id' | 'bucketId'>,
  { overlap, expiresAt }: Rotation,
  now: number,
): Promise<IssuedToken | null> {
  const { token, row } = bucketId === null ? generateServiceToken(now) : generateToken(now)
  const successor = { ...row, expiresAt, replaces: id, replacedUntil: now + overlap }
  const isReplaced = await (bucketId === null
    ? catalog.rotateServiceToken(successor)
    : catalog.rotateToken(bucketId, null, successor))
  return isReplaced ? { token, id: row.id } : null
}

/** Revokes a token of the caller's bucket (docs/interface.md T7). Throws Fault `managed-token-unknown`. `now` is milliseconds since 1970. */
export async function revokeToken(
  catalog: Pick<Catalog, 'findToken' | 'revokeToken'>,
  grant: Pick<Grant, 'bucketId'>,
  id: string,
  now: number,
  by: Actor,
): Promise<void> {
  const token = await findManagedToken(catalog, grant, id)
  await catalog.revokeToken(token.id, now, by)
}

/** The rule of the header `Mediabucket-Bucket` for all routes of one bucket (docs/interface.md ST2, ST3). */
export const createAuthorizationVerifier =
  (
    verifyToken: (token: string, grace?: number) => Promise<VerifiedGrant>,
    {
      verifyInBucket,
      requireOwnBucket,
    }: {
      readonly verifyInBucket: (
        token: string,
        bucket: string | undefined,
        grace?: number,
      ) => Promise<VerifiedGrant>
      readonly requireOwnBucket: (grant: VerifiedGrant, bucket: string) => Promise<void>
    },
  ): AuthorizationVerifier =>
  async (authorization, bucket, grace) => {
    const token = parseBearerToken(authorization)
    if (isServiceToken(token)) return await verifyInBucket(token, bucket, grace)
    const grant = await verifyToken(token, grace)
    if (bucket !== undefined) await requireOwnBucket(grant, bucket)
    return grant
  }

export const createAuthorizer =
  (
    verifyAuthorization: AuthorizationVerifier,
    { countToken }: Pick<RequestLimits, 'countToken'>,
    { wholeOfRequest }: Pick<ClientAddresses, 'wholeOfRequest'>,
    usage: UsageCounter,
  ): Authorizer =>
  async ({ request, id, line }, scope, { isCounted = false, waits = false, grace = 0, previous } = {}) => {
    const verify = () => verifyAuthorization(requireAuthorization(request), namedBucket(request), grace)
    const found = await verify()
    line.token = found.tokenId
    const isWaiting = waits || writes(request.method, scope)
    const grant = isWaiting ? await completed(found, verify) : await completedForReads(found, verify)
    const refusal = isCounted ? null : countToken(grant.tokenId)
    if (refusal) throw refusal
    // A download counts in the bucket of its item.
    if (!isCounted && line.kind !== 'download') usage.countRequest(grant.bucketId, line.kind)
    if (scope !== null) requireScope(grant, scope)
    if (previous !== undefined) requireSameBucket(grant, previous)
    return { ...grant, actor: actorOf(grant, wholeOfRequest(request), id) }
  }

/** A request that was granted a bucket goes on with no other one of its name. Throws as bucketDeleted. */
export function requireSameBucket(
  { bucketId }: Pick<Grant, 'bucketId'>,
  previous: Pick<Grant, 'bucketId'>,
): void {
  if (bucketId !== previous.bucketId) throw bucketDeleted()
}

/** The actor of a request in the audit log. */
export const actorOf = (
  { tokenId, subject }: Pick<Grant, 'tokenId' | 'subject'>,
  address: string | null,
  requestId: string,
): Actor => ({ kind: 'client', tokenId, subject, address, requestId })

/** Whether the request changes the bucket. Links are signed with the scope of reads. */
const writes = (method: string | undefined, scope: Scope | null): boolean =>
  scope !== null && scope !== 'media:read' && method !== 'GET' && method !== 'HEAD'

/** What the token grants once earlier changes are done. An item may expire while the request waits for that of others. */
export async function completed(
  grant: VerifiedGrant,
  verify: () => Promise<VerifiedGrant>,
): Promise<VerifiedGrant> {
  let current = grant
  for (let round = 0; round < 2 && current.earlierWork !== undefined; round += 1) {
    await current.earlierWork()
    current = await verify()
  }
  return current
}

/** The same for a request that reads: it waits only while so many items have expired that reads would pass by them (docs/interface.md E2). */
export const completedForReads = (
  grant: VerifiedGrant,
  verify: () => Promise<VerifiedGrant>,
): VerifiedGrant | Promise<VerifiedGrant> => (hasManyExpired(grant) ? completed(grant, verify) : grant)

/**
 * Looks up a token for each request: a token is refused from the moment it is revoked or expires (docs/interface.md A2, A7, A9).
 * Throws Fault `token-malformed`, `token-unknown`, `token-revoked` and `token-expired`.
 */
export function verifyTokenOperation(parts: {
  readonly catalog: Pick<Catalog, 'findGrant' | 'touchToken'>
  readonly removeExpired: RemoveExpired
  readonly now: () => number
  /** Receives the error if a use could not be recorded; the request is not affected. */
  readonly onTouchFailure: (error: unknown) => void
}) {
  const { catalog, removeExpired, now } = parts
  const recordUse = recordUseOperation(parts)
  /** A token is valid for `grace` milliseconds after its expiry. */
  return async function verifyToken(token: string, grace = 0): Promise<VerifiedGrant> {
    const grant = await catalog.findGrant(hashToken(token))
    if (grant === null) {
      // The format is checked last: issued tokens are well-formed, so most requests need the lookup only.
      throw isWellFormedToken(token) ? tokenUnknown() : tokenMalformed()
    }
    const at = now()
    requireValid(grant, at, grace)
    recordUse(grant, at)
    const isExpired = grant.expiresAt !== null && grant.expiresAt <= at
    return removeExpiredOf(isExpired ? { ...grant, isExpired } : grant, removeExpired, at)
  }
}

/** Throws Fault `token-revoked` and `token-expired`. */
export function requireValid(
  { tokenId, revokedAt, expiresAt }: Pick<Grant, 'tokenId' | 'revokedAt' | 'expiresAt'>,
  at: number,
  grace: number,
): void {
  if (revokedAt !== null) throw new TokenFault(tokenRevoked(), tokenId)
  if (expiresAt !== null && expiresAt + grace <= at) throw new TokenFault(tokenExpired(expiresAt), tokenId)
}

/**
 * Removes the items of a bucket that have expired, in the background. The returned function waits for that; it throws Fault `catalog-busy` if
 * it takes long. Does nothing for a while after a failure: the sweep reports it.
 */
export type RemoveExpired = (bucketId: BucketId) => () => Promise<void>

/** Starts the removal of the items that have expired at `now`. Reads leave them out until they are removed (docs/interface.md E2). */
export const removeExpiredOf = (
  grant: VerifiedGrant,
  removeExpired: RemoveExpired,
  now: number,
): VerifiedGrant =>
  grant.nextExpiry !== null && grant.nextExpiry <= now
    ? { ...grant, earlierWork: removeExpired(grant.bucketId) }
    : grant

/** Milliseconds between two recorded uses of a token. */
const interval = 3_600_000

/** Maximum number of tokens in memory. An evicted token costs one more write. */
const maxTokens = 10_000

/**
 * Records uses of tokens in the background, at most one attempt per token and hour, so that a full or busy catalog does not receive a
 * write with every request. A clock that is set back by an hour or more does not stop the recording.
 */
export function recordUseOperation(parts: {
  readonly catalog: Pick<Catalog, 'touchToken'>
  readonly onTouchFailure: (error: unknown) => void
}): (grant: Pick<Grant, 'tokenId' | 'lastUsedAt'>, at: number) => void {
  const { catalog, onTouchFailure } = parts
  const attempts = new Map<TokenId, number>()

  async function touch(id: TokenId, at: number): Promise<void> {
    try {
      await catalog.touchToken(id, at)
    } catch (error) {
      onTouchFailure(error)
    }
  }

  return ({ tokenId, lastUsedAt }, at) => {
    if (isRecent(lastUsedAt, at) || isRecent(attempts.get(tokenId) ?? null, at)) return
    attempts.delete(tokenId)
    attempts.set(tokenId, at)
    const [oldest] = attempts.keys()
    if (attempts.size > maxTokens && oldest !== undefined) attempts.delete(oldest)
    void touch(tokenId, at)
  }
}

const isRecent = (time: number | null, at: number): boolean => time !== null && Math.abs(at - time) < interval
