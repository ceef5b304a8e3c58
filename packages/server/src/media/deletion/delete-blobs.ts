import type { BlobStore } from '../../blobs/blobs.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { ItemId } from '../../core/media-id.ts'
import { settleAll } from '../../core/settle-all.ts'

export interface BlobDeletionParts {
  readonly catalog: Pick<Catalog, 'clearTombstones'>
  readonly blobs: Pick<BlobStore, 'remove'>
  /** True while a backup runs, which needs the bytes of items that existed when it began. */
  readonly isBackupRunning: () => boolean
  /** Receives each id whose tombstone stays until the next start, and the error. */
  readonly onDeletionFailure: (id: ItemId, error: unknown) => void
}

/** Tombstones that are cleared in one transaction, at most. */
const batchLength = 100

/** Low, so that uploads get threads of libuv's pool for their syncs. */
const parallelism = 2

/**
 * Deletes the bytes of deleted items, then their tombstones. Returns how many; 0 while a backup blocks deletions
 * (docs/interface.md F6). Never throws.
 */
export async function deleteBlobs(parts: BlobDeletionParts, ids: readonly ItemId[]): Promise<number> {
  let deleted = 0
  for (let done = 0; done < ids.length; done += batchLength)
    deleted += await deleteBatch(parts, ids.slice(done, done + batchLength))
  return deleted
}

async function deleteBatch(parts: BlobDeletionParts, ids: readonly ItemId[]): Promise<number> {
  const { catalog, blobs, isBackupRunning, onDeletionFailure } = parts
  // The rows are deleted already, so the snapshot of a backup that begins after this check does not name these bytes.
  if (isBackupRunning()) return 0
  const results = await settleAll(ids, parallelism, async (id) => {
    try {
      await blobs.remove(id)
      return id
    } catch (error) {
      onDeletionFailure(id, error)
      return null
    }
  })
  const deleted = results.flatMap((result) =>
    result.status === 'fulfilled' && result.value !== null ? [result.value] : [],
  )
  if (deleted.length === 0) return 0
  try {
    await catalog.clearTombstones(deleted)
    return deleted.length
  } catch (error) {
    for (const id of deleted) onDeletionFailure(id, error)
    return 0
  }
}
