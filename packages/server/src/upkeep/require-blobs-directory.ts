import type { Catalog } from '../catalog/catalog.ts'
import { requireSameIdentity } from '../media/match-blobs-directory.ts'

/**
 * Throws BlobsMismatchError where the catalog has an identity and the directory of the bytes has not the same: for
 * commands, which would take the bytes of a disk that is not mounted for missing or removed ones.
 */
export async function requireBlobsDirectory(parts: {
  readonly catalog: Pick<Catalog, 'blobsIdentity'>
  readonly directory: { readonly path: string; read(): string | null }
}): Promise<void> {
  const expected = await parts.catalog.blobsIdentity()
  if (expected !== null) requireSameIdentity(parts.directory.path, expected, parts.directory.read())
}
