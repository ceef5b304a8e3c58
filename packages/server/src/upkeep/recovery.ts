import { type ItemId, isItemId, isUploadId } from '../core/ids.ts'
import { deleteBlobs } from '../items/blob-deletion.ts'
import type { BlobRecovery, BlobStore } from '../storage/blobs/blobs.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'

interface Leftover {
  readonly id: ItemId
  readonly error: unknown
}

/** Deleted items whose bytes the start removes. A sweep removes those of the others, so that the start does not take long. */
const tombstonesAtStart = 1_000

/**
 * Completes the work of an earlier process that was interrupted, before the service starts. Removes temporary files, deletes
 * the bytes of deleted items, makes the offsets of resumable uploads and their files agree, and removes orphans. Does nothing with a
 * store that other servers use: a sweep removes what they left (items/blob-deletion.ts). Returns the number of each (`rewound`: lowered
 * offsets), and the ids whose bytes could not be deleted.
 */
export async function recover(parts: {
  readonly catalog: Pick<
    Catalog,
    | 'awaitEarlierWrites'
    | 'listTombstones'
    | 'removableBlobs'
    | 'clearTombstones'
    | 'unfinishedUploads'
    | 'itemsNamed'
    | 'moveUpload'
    | 'listIntents'
    | 'clearIntents'
    | 'findUnreferenced'
  >
  readonly blobs: Pick<BlobStore, 'remove' | 'removalsAtOnce' | 'recovery'>
  readonly isBackupRunning: () => boolean
}): Promise<{
  temporary: number
  tombstones: number
  rewound: number
  orphans: number
  leftovers: Leftover[]
}> {
  const leftovers: Leftover[] = []
  const onDeletionFailure = (id: ItemId, error: unknown): void => {
    leftovers.push({ id, error })
  }
  const { recovery } = parts.blobs
  if (recovery === null) return { temporary: 0, tombstones: 0, rewound: 0, orphans: 0, leftovers }
  await parts.catalog.awaitEarlierWrites()
  const temporary = await recovery.removeTemporary()
  const some = (await parts.catalog.listTombstones()).slice(0, tombstonesAtStart)
  const tombstones = await deleteBlobs({ ...parts, onDeletionFailure }, some)
  const rewound = await rewindUploads(parts, recovery)
  const orphans = await removeOrphans(parts, onDeletionFailure)
  return { temporary, tombstones, rewound, orphans, leftovers }
}

/** Removes blobs without a row. Runs after `rewindUploads`, which renames the files of unfinished uploads back. */
async function removeOrphans(
  { catalog, blobs }: Parameters<typeof recover>[0],
  onDeletionFailure: (id: ItemId, error: unknown) => void,
): Promise<number> {
  const intents = await catalog.listIntents()
  const orphans = await catalog.findUnreferenced(intents)
  const failed = new Set<ItemId>()
  for (const id of orphans) {
    try {
      await blobs.remove(id)
    } catch (error) {
      failed.add(id)
      onDeletionFailure(id, error)
    }
  }
  if (intents.length > 0) await catalog.clearIntents(intents.filter((id) => !failed.has(id)))
  return orphans.length - failed.size
}

/** Lowers the offsets that are beyond the end of their file. */
async function rewindUploads(
  { catalog }: Parameters<typeof recover>[0],
  recovery: BlobRecovery,
): Promise<number> {
  // Rows that the service did not write have no bytes. They expire.
  const written = (await catalog.unfinishedUploads()).filter(
    ({ id, itemId }) => isUploadId(id) && isItemId(itemId),
  )
  const named = new Set(await catalog.itemsNamed(written.map(({ itemId }) => itemId)))
  const uploads = written.map((upload) => ({ ...upload, isItem: named.has(upload.itemId) }))
  const short = await recovery.matchUploads(uploads)
  for (const { id, offset, expiresAt } of uploads) {
    const size = short.get(id)
    if (size !== undefined) await catalog.moveUpload(id, offset, size, expiresAt)
  }
  return short.size
}
