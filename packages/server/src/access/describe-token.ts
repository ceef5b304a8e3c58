import type { Catalog } from '../catalog/catalog.ts'
import type { Grant } from '../catalog/records.ts'
import { Fault } from '../core/fault.ts'
import { type TokenObject, tokenObject } from './token-object.ts'

/**
 * Reads the token of this grant. Scopes and expiry are those of the request: a user’s row has none (docs/interface.md J6). Throws
 * Fault `token-unknown` if it no longer exists.
 */
export async function describeToken(
  catalog: Pick<Catalog, 'token'>,
  grant: Pick<Grant, 'tokenId' | 'scopes' | 'expiresAt'>,
): Promise<TokenObject> {
  const token = await catalog.token(grant.tokenId)
  if (token === null) throw new Fault('token-unknown', 'This service has not issued this token.')
  return tokenObject({ ...token, scopes: [...grant.scopes], expiresAt: grant.expiresAt })
}
