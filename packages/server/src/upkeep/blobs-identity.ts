import { randomBytes } from 'node:crypto'
import { isItemId } from '../core/ids.ts'
import { type BlobsDirectory, BlobsMismatchError } from '../storage/blobs/blobs.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import { movedSettings, movedText } from '../storage/catalog/moved-data.ts'
import type { BlobsOwner } from '../storage/catalog/upkeep.ts'

/**
 * Checks that the directory of the blobs belongs to the catalog: both store the same identity (docs/interface.md S9). Restored
 * data have no identity: it is created if the directory has their blobs. Throws BlobsMismatchError.
 */
export async function matchBlobsDirectory(parts: {
  readonly catalog: Pick<Catalog, 'blobsIdentity' | 'claimBlobsIdentity' | 'someWithBlobs'>
  readonly directory: BlobsDirectory
}): Promise<void> {
  const { catalog, directory } = parts
  const expected = await catalog.blobsIdentity()
  const items = expected === null ? await catalog.someWithBlobs() : []
  const found = await requireOwnBlobs({ identity: expected, items }, directory)
  if (expected !== null) return
  // A directory receives a new identity even if it has one, so that the catalog from which the rows were migrated can no longer use it.
  // In a shared store, another server that starts at the same time may have written the existing identity, so it stays.
  const identity =
    directory.isShared && found !== null && movedSettings(found) === null
      ? found
      : randomBytes(16).toString('hex')
  // The directory first: after a crash between the two writes, the next start finds a catalog without an identity.
  if (identity !== found) await directory.writeIdentity(identity)
  const claimed = await catalog.claimBlobsIdentity(identity)
  if (claimed === identity) return
  // Another server that starts at the same time was first. Each server that wrote its own identity replaces it.
  if (!directory.isShared) requireSameIdentity(directory, claimed, identity)
  await directory.writeIdentity(claimed)
}

/**
 * The checks of matchBlobsDirectory, without changes. Returns the identity of the directory; null if it has none. Throws BlobsMismatchError.
 */
export async function requireOwnBlobs(owner: BlobsOwner, directory: BlobsDirectory): Promise<string | null> {
  const { path, advice } = directory
  const found = await directory.readIdentity()
  if (owner.identity !== null) {
    requireSameIdentity(directory, owner.identity, found)
    return found
  }
  // Rows that the service did not write have no bytes.
  const items = owner.items.filter(isItemId)
  const belongs =
    items.length === 0
      ? found === null || (await directory.isEmpty())
      : (await Promise.all(items.map((id) => directory.has(id)))).includes(true)
  if (!belongs)
    throw new BlobsMismatchError(
      items.length === 0
        ? `${path} holds the bytes of another catalog: catalog.db is new and has no items. Put the right catalog.db back, restore a backup with mediabucket restore, or ${advice.catalog}.`
        : `${path} does not have the bytes of the items in the catalog: ${advice.missing}. ${advice.cure}, then start again, or restore a backup with mediabucket restore.`,
    )
  return found
}

/** Throws BlobsMismatchError. */
function requireSameIdentity(
  { path, advice }: Pick<BlobsDirectory, 'path' | 'advice'>,
  expected: string,
  found: string | null,
): void {
  if (found === expected) return
  const moved = movedSettings(found)
  if (moved !== null) throw new BlobsMismatchError(movedText(path, moved))
  const reason =
    found === null
      ? `is not ${advice.place} in which the bytes were stored: ${advice.missing}`
      : 'holds the bytes of another catalog'
  throw new BlobsMismatchError(`${path} ${reason}. ${advice.identify(expected)}`)
}

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
      `${directory.path} may hold the bytes of another catalog: this catalog has no identity, or a damaged one. If these are the settings of the service, start it once, then try again.`,
    )
}

/**
 * The same for commands that only read: the catalog alone may have no identity, as after a migration until the first start, if the directory has bytes of
 * its items.
 */
export async function requireReadableBlobs({
  catalog,
  directory,
}: Parameters<typeof matchBlobsDirectory>[0]): Promise<void> {
  if ((await catalog.blobsIdentity()) !== null || (await directory.readIdentity()) === null)
    await requireBlobsDirectory({ catalog, directory })
  else await requireOwnBlobs({ identity: null, items: await catalog.someWithBlobs() }, directory)
}

/**
 * Gives a catalog that no service has used, and the directory of its blobs, one identity. Does nothing if the catalog has one.
 * Throws BlobsMismatchError.
 */
export async function ensureBlobsIdentity(parts: Parameters<typeof matchBlobsDirectory>[0]): Promise<void> {
  if ((await parts.catalog.blobsIdentity()) === null) await matchBlobsDirectory(parts)
}
