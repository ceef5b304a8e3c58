import type { KeyCatalog } from '../catalog/keys.ts'
import { Fault } from '../core/fault.ts'
import { isSignedWith, type SignedUrl } from '../core/signed-url.ts'

/** Throws Fault `signature-invalid` and `link-expired`. */
export type VerifyLink = (signed: SignedUrl) => Promise<void>

/** Verifies signed URLs with the current keys, which it reads for each call (docs/interface.md H5, H8). */
export const verifyLinkOperation =
  (parts: { readonly catalog: Pick<KeyCatalog, 'signingKeys'>; readonly now: () => number }): VerifyLink =>
  async (signed) => {
    const key = (await parts.catalog.signingKeys()).find(({ id }) => id === signed.keyId)
    if (key === undefined || !isSignedWith(key.secret, signed)) throw signatureInvalid()
    if (signed.expires * 1000 <= parts.now())
      throw new Fault(
        'link-expired',
        `This link expired at ${new Date(signed.expires * 1000).toISOString()}.`,
      )
  }

/** The same fault for every reason, so that it shows nothing about the keys. */
export const signatureInvalid = (): Fault =>
  new Fault(
    'signature-invalid',
    'The signature does not belong to this URL: the URL was changed, or its key was removed.',
  )
