import type { Catalog } from '../catalog/catalog.ts'
import { Fault, tokenRevoked } from '../core/fault.ts'
import { hashToken, isWellFormedToken } from '../core/token-format.ts'
import { type RemoveExpired, removeExpiredOf, type VerifiedGrant } from './expired-items.ts'
import { recordUseOperation } from './record-use.ts'

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
