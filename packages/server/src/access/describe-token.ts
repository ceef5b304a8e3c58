import type { Catalog, Grant } from '../catalog/catalog.ts'
import { Fault } from '../core/fault.ts'
import type { Scope } from '../core/scopes.ts'

/** A token as it is shown to whoever holds it (docs/interface.md T1). */
export interface TokenObject {
  readonly id: string
  readonly name: string
  readonly bucket: string
  readonly scopes: readonly Scope[]
  /** RFC 3339, UTC. */
  readonly created_at: string
  readonly expires_at: string | null
}

/** What the token of this grant is, read anew. Throws Fault `token-unknown` where it is gone. */
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
