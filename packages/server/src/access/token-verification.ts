import { Fault, tokenRevoked } from '../core/faults.ts'
import { hashToken, isWellFormedToken } from '../core/tokens.ts'
import type { VerifiedGrant } from '../http/authorizer.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { BucketId, Grant, TokenId } from '../storage/catalog/records.ts'

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
  return async function verifyToken(token: string): Promise<VerifiedGrant> {
    const grant = await catalog.findGrant(hashToken(token))
    if (grant === null) {
      // The format is checked last: issued tokens are well-formed, and the lookup costs a tenth of the check.
      if (isWellFormedToken(token))
        throw new Fault('token-unknown', 'This service has not issued this token.')
      throw new Fault(
        'token-malformed',
        'This is not a token of this service. It may be cut off or mistyped.',
      )
    }
    if (grant.revokedAt !== null) throw tokenRevoked()
    const at = now()
    if (grant.expiresAt !== null && grant.expiresAt <= at)
      throw new Fault('token-expired', `This token expired at ${new Date(grant.expiresAt).toISOString()}.`)
    recordUse(grant, at)
    return removeExpiredOf(grant, removeExpired, at)
  }
}

type Verifier = (token: string) => Promise<VerifiedGrant>

/** Chooses by the form: JWTs have dots, and tokens of this service have none. */
export const verifyAnyToken =
  ({
    verifyToken,
    verifyUser,
  }: {
    readonly verifyToken: Verifier
    readonly verifyUser: Verifier
  }): Verifier =>
  (token) =>
    token.includes('.') ? verifyUser(token) : verifyToken(token)

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
    ? { ...grant, settle: removeExpired(grant.bucketId) }
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
