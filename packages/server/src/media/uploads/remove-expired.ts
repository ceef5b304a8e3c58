import type { Catalog } from '../../catalog/catalog.ts'
import { dropUpload, type RemoveUploadParts } from './remove-upload.ts'
import type { AllUploadLocks } from './upload-locks.ts'

/** Removes expired uploads (docs/interface.md R8) and expired idempotency keys (I5). Returns how many of each. */
export async function removeExpired(
  parts: RemoveUploadParts & {
    readonly catalog: Pick<Catalog, 'expiredUploads' | 'forgetRequests'>
    readonly locks: Pick<AllUploadLocks, 'hold' | 'isHeld'>
    readonly now: () => number
  },
): Promise<{ uploads: number; requests: number }> {
  const { catalog, locks, now } = parts
  let uploads = 0
  for (const { id } of await catalog.expiredUploads(now())) {
    // A request that writes to it extends its expiry.
    if (locks.isHeld(id)) continue
    await locks.hold(id, async () => {
      const upload = await catalog.upload(id)
      if (upload === null || upload.expiresAt > now()) return
      await dropUpload(parts, upload)
      uploads += 1
    })
  }
  return { uploads, requests: await catalog.forgetRequests(now()) }
}
