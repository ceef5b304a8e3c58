import type { NewTokenSecret } from '../catalog/tokens.ts'
import { hashToken, newToken } from '../core/token-format.ts'
import { newTokenId } from './token-id.ts'

/** Generates a token and its id. Only the hash of the token is stored (docs/interface.md A8). `now` is milliseconds since 1970. */
export function generateToken(now: number): { readonly token: string; readonly row: NewTokenSecret } {
  const token = newToken()
  return { token, row: { id: newTokenId(), hash: hashToken(token), createdAt: now } }
}
