import type { Catalog } from '../catalog/catalog.ts'
import type { Grant } from '../catalog/records.ts'
import type { Actor } from '../core/actor.ts'
import { Fault } from '../core/fault.ts'
import { findManagedToken } from './find-managed-token.ts'
import { generateToken } from './new-token.ts'
import { requireGrantable } from './require-scope.ts'
import { isUserId } from './token-id.ts'
import { type CreatedToken, createdToken } from './token-object.ts'

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
  catalog: Pick<Catalog, 'token' | 'rotateToken'>,
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
      'The token has expired or has been revoked, so it has no successor.',
    )
  return createdToken(catalog, row.id, token)
}
