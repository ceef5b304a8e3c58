import { randomBytes } from 'node:crypto'
import { Fault } from '../core/faults.ts'
import { randomBase32 } from '../core/ids.ts'
import {
  isSignedWith,
  type LinkSigner,
  linkExpiry,
  type SignedUrl,
  signUrl,
  type UrlSettings,
  windowExpiry,
} from '../core/item-urls.ts'
import type { SigningKey } from '../storage/catalog/access/keys.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'

export type SignLinks = ReturnType<typeof signLinksOperation>

type Keys = Pick<Catalog, 'signingKeys' | 'addSigningKey'>

/** The newest key. Creates the first one: early, where reads will sign, because these must not need a write. */
export async function ensureSigningKey(catalog: Keys, now: number): Promise<SigningKey> {
  const newest = async () => (await catalog.signingKeys()).at(-1)
  const existing = await newest()
  if (existing) return existing
  await catalog.addSigningKey(newSigningKey(now), true)
  // Another process may have been first.
  const created = await newest()
  if (!created) throw new Error('the signing key was removed while it was created')
  return created
}

/** Signs with the newest key, which it reads for each call. */
export function signLinksOperation(parts: {
  readonly catalog: Keys
  readonly urls: UrlSettings
  readonly now: () => number
}) {
  const { catalog, urls, now } = parts
  /** Returns a signer of links that are valid for this time in seconds; null for the same URLs within a window (docs/interface.md H10). */
  return async function signLinks(lifetime: number | null): Promise<LinkSigner> {
    const at = now()
    const key = await ensureSigningKey(catalog, at)
    const expires = lifetime === null ? windowExpiry(at) : linkExpiry(at, lifetime)
    return {
      tag: `${key.id}.${expires}`,
      expires,
      sign: (item, options) => signUrl(urls, key, item, { ...options, expires }),
    }
  }
}

export type VerifyLink = ReturnType<typeof verifyLinkOperation>

/** Verifies signed URLs with the current keys, which it reads for each call (docs/interface.md H5, H8). */
export function verifyLinkOperation(parts: {
  readonly catalog: Pick<Catalog, 'signingKeys'>
  readonly now: () => number
}) {
  /** Throws Fault `signature-invalid` and `link-expired`. */
  return async function verifyLink(signed: SignedUrl): Promise<void> {
    const key = (await parts.catalog.signingKeys()).find(({ id }) => id === signed.keyId)
    if (key === undefined || !isSignedWith(key.secret, signed)) throw signatureInvalid()
    if (signed.expires * 1000 <= parts.now())
      throw new Fault(
        'link-expired',
        `This link expired at ${new Date(signed.expires * 1000).toISOString()}.`,
      )
  }
}

/** The same fault for every reason, so that it shows nothing about the keys. */
export const signatureInvalid = (): Fault =>
  new Fault(
    'signature-invalid',
    'The signature does not belong to this URL: the URL was changed, or its key was removed.',
  )

/** A key of 256 random bits. `now` is in milliseconds since 1970. */
export const newSigningKey = (now: number): SigningKey => ({
  id: randomBase32(12),
  secret: Uint8Array.from(randomBytes(32)),
  createdAt: now,
})
