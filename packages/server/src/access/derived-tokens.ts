import { createHash, createHmac } from 'node:crypto'
import { base32Letters } from '../core/ids.ts'
import { hashToken, tokenOfSecret } from '../core/token-rules.ts'
import type { NewTokenSecret } from '../storage/catalog/access/tokens.ts'
import type { TokenId } from '../storage/catalog/records.ts'

/**
 * The token that a request with an idempotency key creates. A repetition gets the same token although only its hash is stored: the token is computed from the
 * token of the request, which the service does not store either, and a random nonce, which it stores. Neither of them is enough.
 */
export function deriveToken(
  requestToken: string,
  nonce: Uint8Array,
  now: number,
): { readonly token: string; readonly row: NewTokenSecret } {
  const secret = createHmac('sha256', requestToken).update('first token of a bucket').update(nonce).digest()
  const token = tokenOfSecret(secret)
  const letters = base32Letters(createHash('sha256').update('id').update(nonce).digest().subarray(0, 12))
  return { token, row: { id: `tok_${letters}` as TokenId, hash: hashToken(token), createdAt: now } }
}
