import type { TokenId } from '../catalog/records.ts'
import type { NewTokenSecret } from '../catalog/token-records.ts'
import { randomBase32 } from '../core/base32.ts'
import { hashToken, newToken } from '../core/token-format.ts'

/** Generates a token and its id. Only the hash of the token is stored (docs/interface.md A8). `now` is milliseconds since 1970. */
export function generateToken(now: number): { readonly token: string; readonly row: NewTokenSecret } {
  const token = newToken()
  const id = `tok_${randomBase32(12)}` as TokenId
  return { token, row: { id, hash: hashToken(token), createdAt: now } }
}
