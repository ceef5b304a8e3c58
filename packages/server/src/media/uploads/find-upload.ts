import type { BucketId, Catalog, Upload } from '../../catalog/catalog.ts'
import { Fault } from '../../core/fault.ts'
import { isUploadId } from '../../core/upload-id.ts'

/** One and the same answer for every reason why an upload cannot be had (docs/interface.md R3). */
export const uploadUnknown = (): Fault => new Fault('upload-unknown', 'There is no such upload.')

/** The bucket's upload with this id, which may be any text. Throws Fault `upload-unknown`. */
export async function findUpload(
  catalog: Pick<Catalog, 'upload'>,
  bucketId: BucketId,
  id: string,
  now: number,
): Promise<Upload> {
  const upload = isUploadId(id) ? await catalog.upload(id) : null
  if (upload === null || upload.bucketId !== bucketId || upload.expiresAt <= now) throw uploadUnknown()
  return upload
}
