import { matchBlobsDirectory } from '../media/match-blobs-directory.ts'

/**
 * Gives a catalog that no service has used, and the directory of its blobs, one identity. Does nothing if the catalog has one.
 * Throws BlobsMismatchError.
 */
export async function ensureBlobsIdentity(parts: Parameters<typeof matchBlobsDirectory>[0]): Promise<void> {
  if ((await parts.catalog.blobsIdentity()) === null) await matchBlobsDirectory(parts)
}
