import type { Catalog } from '../../catalog/catalog.ts'
import type { BucketId } from '../../catalog/records.ts'
import type { Upload } from '../../catalog/uploads.ts'
import { Fault } from '../../core/fault.ts'
import { isUploadId } from '../../core/upload-id.ts'

/** The same for every reason, so that the ids of other buckets cannot be probed (docs/interface.md R10). */
export const uploadUnknown = (): Fault => new Fault('upload-unknown', 'There is no such upload.')

/** The upload with this id, which may be any text, if it is the bucket's and has not expired. Throws Fault `upload-unknown`. */
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
