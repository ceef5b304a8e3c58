import type { Catalog } from '../catalog/catalog.ts'
import type { Grant } from '../catalog/records.ts'
import type { GrantedToken } from '../catalog/tokens.ts'
import type { Actor } from '../core/actor.ts'
import { generateToken } from './new-token.ts'
import { requireGrantable } from './require-scope.ts'
import { type CreatedToken, createdToken } from './token-object.ts'

/**
 * Creates a token of the caller's bucket (docs/interface.md T6). Throws Fault `scope-missing` for scopes that the caller lacks, and
 * `token-revoked` if the caller's token has been revoked in the meantime.
 */
export async function grantToken(
  catalog: Pick<Catalog, 'grantToken' | 'token'>,
  grant: Pick<Grant, 'tokenId' | 'bucketId' | 'scopes'>,
  request: Pick<GrantedToken, 'name' | 'scopes' | 'expiresAt'>,
  now: number,
  by: Actor,
): Promise<CreatedToken> {
  requireGrantable(grant, request.scopes)
  const { token, row } = generateToken(now)
  await catalog.grantToken(grant.bucketId, grant.tokenId, { ...request, ...row }, by)
  return createdToken(catalog, row.id, token)
}
