import { type BlobsDirectory, BlobsMismatchError } from '../blobs/blobs.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { requireSameIdentity } from '../media/match-blobs-directory.ts'

/**
 * For commands: without this check they would report the bytes of an unmounted disk as missing, and the bytes of another catalog as
 * orphans. Throws BlobsMismatchError if the catalog and the directory of the blobs do not have the same identity. Both may have none.
 */
export async function requireBlobsDirectory(parts: {
  readonly catalog: Pick<Catalog, 'blobsIdentity'>
  readonly directory: Pick<BlobsDirectory, 'path' | 'advice' | 'readIdentity'>
}): Promise<void> {
  const { catalog, directory } = parts
  const expected = await catalog.blobsIdentity()
  const found = await directory.readIdentity()
  if (expected !== null) requireSameIdentity(directory, expected, found)
  else if (found !== null)
    throw new BlobsMismatchError(
      `${directory.path} may hold the bytes of another catalog: this catalog has no identity yet. If these are the settings of the service, start it once, then try again.`,
    )
}
