import type { Catalog } from '../catalog/catalog.ts'
import type { TokenId } from '../catalog/records.ts'
import type { TokenRecord } from '../catalog/tokens.ts'
import { bucketDeleted } from '../core/fault.ts'
import type { Scope } from '../core/scopes.ts'

/** A token as the API represents it to its owner (docs/interface.md T1). */
export interface TokenObject {
  readonly id: string
  readonly name: string
  readonly bucket: string
  readonly scopes: readonly Scope[]
  /** RFC 3339, UTC. */
  readonly created_at: string
  readonly expires_at: string | null
}

/** A token as the API represents it to those who manage the tokens of a bucket (docs/interface.md T4). */
export interface ManagedTokenObject extends TokenObject {
  /** RFC 3339, UTC. */
  readonly last_used_at: string | null
  readonly revoked_at: string | null
}

/** A new token, with the token itself (docs/interface.md T6). */
export interface CreatedToken extends TokenObject {
  readonly token: string
}

export const tokenObject = ({
  id,
  name,
  bucket,
  scopes,
  createdAt,
  expiresAt,
}: TokenRecord): TokenObject => ({
  id,
  name,
  bucket,
  scopes,
  created_at: new Date(createdAt).toISOString(),
  expires_at: timeOrNull(expiresAt),
})

export const managedTokenObject = (token: TokenRecord): ManagedTokenObject => ({
  ...tokenObject(token),
  last_used_at: timeOrNull(token.lastUsedAt),
  revoked_at: timeOrNull(token.revokedAt),
})

/** Reads the row of a token that has been created. */
export async function createdToken(
  catalog: Pick<Catalog, 'token'>,
  id: TokenId,
  token: string,
): Promise<CreatedToken> {
  const record = await catalog.token(id)
  if (record === null) throw bucketDeleted()
  return { ...tokenObject(record), token }
}

const timeOrNull = (time: number | null): string | null =>
  time === null ? null : new Date(time).toISOString()
