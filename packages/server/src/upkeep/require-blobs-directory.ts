import type { BlobsDirectory } from '../blobs/blobs.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { requireSameIdentity } from '../media/match-blobs-directory.ts'

/**
 * For commands: without this check they would report the bytes of an unmounted disk as missing. Throws BlobsMismatchError
 * if the catalog has an identity and the directory of the blobs has another one or none.
 */
export async function requireBlobsDirectory(parts: {
  readonly catalog: Pick<Catalog, 'blobsIdentity'>
  readonly directory: Pick<BlobsDirectory, 'path' | 'advice' | 'readIdentity'>
}): Promise<void> {
  const { catalog, directory } = parts
  const expected = await catalog.blobsIdentity()
  if (expected !== null) requireSameIdentity(directory, expected, await directory.readIdentity())
}
