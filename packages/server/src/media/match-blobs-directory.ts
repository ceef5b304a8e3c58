import { randomBytes } from 'node:crypto'
import { BlobsMismatchError } from '../blobs/blobs.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { MediaId } from '../core/media-id.ts'

/** The directory of the blobs, before the store is opened. */
interface BlobsDirectory {
  readonly path: string
  readIdentity(): Promise<string | null>
  writeIdentity(identity: string): Promise<void>
  has(id: MediaId): Promise<boolean>
  isEmpty(): Promise<boolean>
}

/**
 * Checks that the directory of the blobs belongs to the catalog: both store the same identity (docs/interface.md S9). Data of
 * earlier versions and restored data have no identity: it is created if the directory has their blobs. Throws BlobsMismatchError.
 */
export async function matchBlobsDirectory(parts: {
  readonly catalog: Pick<Catalog, 'blobsIdentity' | 'setBlobsIdentity' | 'someWithBlobs'>
  readonly directory: BlobsDirectory
}): Promise<void> {
  const { catalog, directory } = parts
  const { path } = directory
  const expected = await catalog.blobsIdentity()
  const found = await directory.readIdentity()
  if (expected !== null) return requireSameIdentity(path, expected, found)
  const items = await catalog.someWithBlobs()
  const belongs =
    items.length === 0
      ? found === null || (await directory.isEmpty())
      : (await Promise.all(items.map(directory.has))).includes(true)
  if (!belongs)
    throw new BlobsMismatchError(
      items.length === 0
        ? `${path} holds the bytes of another catalog: catalog.db is new and has no items. Put the right catalog.db back, restore a backup with mediabucket restore, or set MEDIABUCKET_DATA to another directory.`
        : `${path} does not have the bytes of the items in the catalog: perhaps its disk is not mounted. Mount it there, then start again, or restore a backup with mediabucket restore.`,
    )
  const identity = found ?? randomBytes(16).toString('hex')
  // The directory first: after a crash between the two writes, the next start adopts the identity it finds there.
  if (found === null) await directory.writeIdentity(identity)
  await catalog.setBlobsIdentity(identity)
}

/** Throws BlobsMismatchError. */
export function requireSameIdentity(path: string, expected: string, found: string | null): void {
  if (found === expected) return
  throw new BlobsMismatchError(
    `${path} ${found === null ? 'is not the directory in which the bytes were stored: perhaps its disk is not mounted' : 'holds the bytes of another catalog'}. Mount the right disk there, then try again; if this is the right directory, write ${expected} into ${path}/.identity.`,
  )
}
