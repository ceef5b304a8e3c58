import type { KeyCatalog, SigningKey } from '../catalog/keys.ts'
import { linkExpiry, windowExpiry } from '../core/link-lifetimes.ts'
import type { UrlSettings } from '../core/media-url.ts'
import { type LinkSigner, signUrl } from '../core/signed-url.ts'
import { newSigningKey } from './new-signing-key.ts'

export type SignLinks = ReturnType<typeof signLinksOperation>

type Keys = Pick<KeyCatalog, 'signingKeys' | 'addSigningKey'>

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
