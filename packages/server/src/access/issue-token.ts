import type { Catalog } from '../catalog/catalog.ts'
import type { TokenId } from '../catalog/records.ts'
import { randomBase32 } from '../core/base32.ts'
import type { Scope } from '../core/scopes.ts'
import { hashToken, newToken } from '../core/token-format.ts'

/** Creates a token, and its bucket if it does not exist. Only the hash of the token is stored (docs/interface.md A8). */
export async function issueToken(
  catalog: Pick<Catalog, 'addToken'>,
  request: {
    readonly bucket: string
    readonly name: string
    readonly scopes: readonly Scope[]
    /** Milliseconds since 1970, as `now`; null for a token that does not expire. */
    readonly expiresAt: number | null
    readonly now: number
  },
): Promise<{ token: string; id: TokenId }> {
  const { bucket, name, scopes, expiresAt, now } = request
  const token = newToken()
  const id = `tok_${randomBase32(12)}` as TokenId
  await catalog.addToken({ id, bucket, name, hash: hashToken(token), scopes, createdAt: now, expiresAt })
  return { token, id }
}
