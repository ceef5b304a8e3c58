import type { BlobStore } from '../../blobs/blobs.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { MediaId } from '../../core/media-id.ts'
import { settleAll } from '../../core/settle-all.ts'

export interface BlobDeletionParts {
  readonly catalog: Pick<Catalog, 'clearTombstones'>
  readonly blobs: Pick<BlobStore, 'remove'>
  /** True while a backup needs the bytes of items that were there when it began. */
  readonly isHeldByBackup: () => boolean
  /** Hears of each id whose tombstone stays for the next start, and why. */
  readonly onDeletionFailure: (id: MediaId, error: unknown) => void
}

/** Few, so that uploads find threads for their syncs. */
const removalsAtOnce = 2

/**
 * Removes the bytes of removed items, and then, never before, their tombstones; says how many: none while removals are
 * held (docs/interface.md F6). Does not throw.
 */
export async function deleteBlobs(parts: BlobDeletionParts, ids: readonly MediaId[]): Promise<number> {
  const { catalog, blobs, isHeldByBackup, onDeletionFailure } = parts
  // After the rows were removed: a backup that begins after this look does not name them any more.
  if (isHeldByBackup()) return 0
  const results = await settleAll(ids, removalsAtOnce, async (id) => {
    try {
      await blobs.remove(id)
      return id
    } catch (error) {
      onDeletionFailure(id, error)
      return null
    }
  })
  const erased = results.flatMap((result) =>
    result.status === 'fulfilled' && result.value !== null ? [result.value] : [],
  )
  if (erased.length === 0) return 0
  try {
    await catalog.clearTombstones(erased)
    return erased.length
  } catch (error) {
    for (const id of erased) onDeletionFailure(id, error)
    return 0
  }
}
