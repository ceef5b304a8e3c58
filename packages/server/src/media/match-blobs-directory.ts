import { randomBytes } from 'node:crypto'
import type { Catalog } from '../catalog/catalog.ts'
import { BlobsMismatchError } from '../core/blobs-mismatch-error.ts'
import type { MediaId } from '../core/media-id.ts'

/** What is asked of the directory of the bytes. */
interface Directory {
  readonly path: string
  read(): string | null
  write(identity: string): Promise<void>
  has(id: MediaId): boolean
  isEmpty(): boolean
}

/**
 * Makes sure that the directory of the bytes belongs to the catalog, by an identity that both have (docs/interface.md S9).
 * Data of earlier versions and restored ones get one here, if their bytes are there. Throws BlobsMismatchError.
 */
export async function matchBlobsDirectory(parts: {
  readonly catalog: Pick<Catalog, 'blobsIdentity' | 'setBlobsIdentity' | 'someWithBytes'>
  readonly directory: Directory
}): Promise<void> {
  const { catalog, directory } = parts
  const expected = await catalog.blobsIdentity()
  const found = directory.read()
  const { path } = directory
  if (expected !== null) return requireSameIdentity(path, expected, found)
  const items = await catalog.someWithBytes()
  const isThere = items.length === 0 ? found === null || directory.isEmpty() : items.some(directory.has)
  if (!isThere)
    throw new BlobsMismatchError(
      items.length === 0
        ? `${path} holds the bytes of another catalog than catalog.db, which is new. Put the right catalog.db back, restore a backup with mediabucket restore, or set MEDIABUCKET_DATA to another directory.`
        : `${path} has the bytes of none of the items of the catalog: perhaps its disk is not mounted. Mount it there, then start again, or restore a backup with mediabucket restore.`,
    )
  const identity = found ?? randomBytes(16).toString('hex')
  // First here: a crash between the two leaves a directory whose identity the next start takes over.
  if (found === null) await directory.write(identity)
  await catalog.setBlobsIdentity(identity)
}

/** Throws BlobsMismatchError. */
export function requireSameIdentity(path: string, expected: string, found: string | null): void {
  if (found === expected) return
  throw new BlobsMismatchError(
    `${path} ${found === null ? 'is not the directory in which the bytes were stored: perhaps its disk is not mounted' : 'holds the bytes of another catalog'}. Mount the right disk there, then try again; if this is the right directory, write ${expected} into ${path}/.identity.`,
  )
}
