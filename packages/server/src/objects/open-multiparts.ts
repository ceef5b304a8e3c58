import { type ChecksumAlgorithm, isChecksumAlgorithm } from '../core/checksums.ts'
import { Fault } from '../core/faults.ts'
import { isUploadId } from '../core/ids.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { Multipart } from '../storage/catalog/objects/multipart-uploads.ts'
import { parseHeaders } from './object-operations.ts'
import type { ChecksumType, ObjectCaller, ObjectHeaders } from './object-types.ts'

/** The checksum that an upload in parts will have. */
export interface MultipartChecksum {
  readonly algorithm: ChecksumAlgorithm
  readonly type: ChecksumType
}

/** An unfinished upload. */
export interface OpenMultipart extends Omit<Multipart, 'headers' | 'checksum'> {
  readonly headers: ObjectHeaders
  readonly checksum: MultipartChecksum | null
}

interface Lookup {
  readonly catalog: Pick<Catalog, 'findMultipart'>
  readonly now: () => number
}

/** The same for every reason, so that the ids of other buckets cannot be probed. */
export const uploadUnknown = (): Fault => new Fault('upload-unknown', 'There is no such upload.')

/** The unfinished upload of the key with this id, which may be any text. An upload with limits is found only with the same limits. Throws Fault `upload-unknown`. */
export async function findMultipart(
  parts: Lookup,
  caller: Pick<ObjectCaller, 'bucketId' | 'limits'>,
  key: string,
  id: string,
): Promise<OpenMultipart> {
  const upload = await findAny(parts, caller, key, id)
  if (upload.completed !== null) throw uploadUnknown()
  return upload
}

/** As findMultipart, also a completed one. */
export async function findAny(
  { catalog, now }: Lookup,
  { bucketId, limits }: Pick<ObjectCaller, 'bucketId' | 'limits'>,
  key: string,
  id: string,
): Promise<OpenMultipart> {
  const upload = isUploadId(id) ? await catalog.findMultipart(bucketId, id) : null
  if (upload === null || upload.key !== key || upload.expiresAt <= now()) throw uploadUnknown()
  if (upload.limitedBy !== (limits?.id ?? null)) throw uploadUnknown()
  return openOf(upload)
}

/** An upload with what its texts contain. */
export const openOf = (upload: Multipart): OpenMultipart => ({
  ...upload,
  ...{ headers: parseHeaders(upload.headers), checksum: parseChecksum(upload.checksum) },
})

function parseChecksum(stored: string | null): MultipartChecksum | null {
  if (stored === null) return null
  const [algorithm = '', type] = stored.split(' ')
  if (!isChecksumAlgorithm(algorithm) || (type !== 'FULL_OBJECT' && type !== 'COMPOSITE'))
    throw new TypeError('the catalog holds a checksum of an upload that is not valid')
  return { algorithm, type }
}
