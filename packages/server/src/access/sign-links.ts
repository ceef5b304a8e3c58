import type { KeyCatalog, SigningKey } from '../catalog/key-catalog.ts'
import { linkExpiry, windowExpiry } from '../core/link-lifetimes.ts'
import type { UrlSettings } from '../core/media-url.ts'
import { type LinkSigner, signUrl } from '../core/signed-url.ts'
import { newSigningKey } from './new-signing-key.ts'

/** Returns a signer of links that are valid for this time in seconds; null for the same URLs within a window (docs/interface.md H10). */
export type SignLinks = (lifetime: number | null) => Promise<LinkSigner>

/** Signs with the newest key, which it reads for each call, and creates if there is none. */
export function signLinksOperation(parts: {
  readonly catalog: Pick<KeyCatalog, 'signingKeys' | 'addSigningKey'>
  readonly urlSettings: UrlSettings
  readonly now: () => number
}): SignLinks {
  const { catalog, urlSettings, now } = parts

  const newestKey = async () => (await catalog.signingKeys()).at(-1)

  async function currentKey(): Promise<SigningKey> {
    const existing = await newestKey()
    if (existing) return existing
    await catalog.addSigningKey(newSigningKey(now()), true)
    // Another process may have been first.
    const created = await newestKey()
    if (!created) throw new Error('the signing key was removed while it was created')
    return created
  }

  return async (lifetime) => {
    const key = await currentKey()
    const at = now()
    const expires = lifetime === null ? windowExpiry(at) : linkExpiry(at, lifetime)
    return {
      tag: `${key.id}.${expires}`,
      expires,
      sign: (item, options) => signUrl(urlSettings, key, item, { ...options, expires }),
    }
  }
}
