import type { Catalog } from '../../catalog/catalog.ts'
import { dropUpload, type RemoveUploadParts } from './remove-upload.ts'

/** Forgets what was kept for a time that is over: uploads (docs/interface.md R8) and keys of requests (I5). */
export async function sweep(
  parts: RemoveUploadParts & {
    readonly catalog: Pick<Catalog, 'expiredUploads' | 'forgetRequests'>
    readonly now: () => number
  },
): Promise<{ uploads: number; requests: number }> {
  const { catalog, turns, now } = parts
  let uploads = 0
  for (const { id } of await catalog.expiredUploads(now())) {
    // Whoever is at it renews it with the next bytes.
    if (turns.isTaken(id)) continue
    await turns.take(id, async () => {
      const upload = await catalog.upload(id)
      if (upload === null || upload.expiresAt > now()) return
      await dropUpload(parts, upload)
      uploads += 1
    })
  }
  return { uploads, requests: await catalog.forgetRequests(now()) }
}
