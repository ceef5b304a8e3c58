import type { KeyCatalog } from '../catalog/keys.ts'
import { Fault } from '../core/fault.ts'
import { isSignedWith, type SignedUrl } from '../core/signed-url.ts'

export type VerifyLink = ReturnType<typeof verifyLinkOperation>

/** Verifies signed URLs with the current keys, which it reads for each call (docs/interface.md H5, H8). */
export function verifyLinkOperation(parts: {
  readonly catalog: Pick<KeyCatalog, 'signingKeys'>
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
