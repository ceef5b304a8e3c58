import type { Catalog } from '../catalog/catalog.ts'
import type { Grant } from '../catalog/records.ts'
import { Fault } from '../core/fault.ts'
import type { Scope } from '../core/scopes.ts'

/** A token as the API represents it (docs/interface.md T1). */
export interface TokenObject {
  readonly id: string
  readonly name: string
  readonly bucket: string
  readonly scopes: readonly Scope[]
  /** RFC 3339, UTC. */
  readonly created_at: string
  readonly expires_at: string | null
}

/** Reads the token of this grant. Throws Fault `token-unknown` if it no longer exists. */
export async function describeToken(
  catalog: Pick<Catalog, 'token'>,
  grant: Pick<Grant, 'tokenId'>,
): Promise<TokenObject> {
  const token = await catalog.token(grant.tokenId)
  if (token === null) throw new Fault('token-unknown', 'This service has not issued this token.')
  const { id, name, bucket, scopes, createdAt, expiresAt } = token
  return {
    id,
    name,
    bucket,
    scopes,
    created_at: new Date(createdAt).toISOString(),
    expires_at: expiresAt === null ? null : new Date(expiresAt).toISOString(),
  }
}
