import { createHmac } from 'node:crypto'
import type { SigningKey } from '../storage/catalog/access/keys.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import { ensureSigningKey } from './signed-links.ts'

/** The keys with which a program signs requests of the S3 protocol as a token (docs/interface.md SP1). */
export interface KeyPair {
  readonly access_key_id: string
  readonly secret_access_key: string
}

/**
 * The secret of a token: 64 hexadecimal digits, because programs take a secret that begins with a hyphen for an option. Nothing of it is stored: it
 * follows from a key that signs URLs, and from the id of the token.
 */
export const secretAccessKey = (key: Pick<SigningKey, 'secret'>, tokenId: string): string =>
  createHmac('sha256', key.secret).update(`mediabucket s3 secret\0${tokenId}`).digest('hex')

/** The pair of a token, by the newest key. */
export async function keyPairOf(
  catalog: Pick<Catalog, 'signingKeys' | 'addSigningKey'>,
  tokenId: string,
  now: number,
): Promise<KeyPair> {
  const key = await ensureSigningKey(catalog, now)
  return { access_key_id: tokenId, secret_access_key: secretAccessKey(key, tokenId) }
}
