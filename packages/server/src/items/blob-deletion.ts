import { isOutage } from '../core/faults.ts'
import type { ItemId } from '../core/ids.ts'
import { settleAll } from '../core/tasks.ts'
import type { BlobStore, IntentLog } from '../storage/blobs/blobs.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'

export interface BlobDeletionParts {
  readonly catalog: Pick<Catalog, 'removableBlobs' | 'clearTombstones'>
  readonly blobs: Pick<BlobStore, 'remove' | 'removalsAtOnce'>
  /** True while a backup runs, which needs the bytes of items that existed when it began. */
  readonly isBackupRunning: () => boolean
  /** Receives each id whose tombstone stays until the next start, and the error. */
  readonly onDeletionFailure: (id: ItemId, error: unknown) => void
}

/** Tombstones that are cleared in one transaction, at most. */
const batchLength = 100

/**
 * Deletes the bytes of deleted items, then their tombstones. Bytes that a row names stay, whatever the tombstones say (docs/interface.md F12).
 * Returns how many; 0 while a backup blocks deletions (F6). Never throws.
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
  let removable: readonly ItemId[]
  try {
    removable = await catalog.removableBlobs(ids)
  } catch (error) {
    for (const id of ids) onDeletionFailure(id, error)
    return 0
  }
  const deleted = await removeEach(
    removable,
    blobs.removalsAtOnce,
    (id) => blobs.remove(id),
    onDeletionFailure,
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

/** Returns the ids whose bytes are removed. After an outage, all others fail at once: each may wait until a deadline, and a stop waits for all. */
async function removeEach(
  ids: readonly ItemId[],
  atOnce: number,
  remove: (id: ItemId) => Promise<void>,
  onFailure: (id: ItemId, error: unknown) => void,
): Promise<ItemId[]> {
  const removed: ItemId[] = []
  let outage: unknown = null
  await settleAll(ids, atOnce, async (id) => {
    try {
      if (outage !== null) throw outage
      await remove(id)
      removed.push(id)
    } catch (error) {
      if (isOutage(error)) outage = error
      onFailure(id, error)
    }
  })
  return removed
}

interface DeferredDeletions {
  /** Also true if the check fails. After it returns true, `retry` runs the deferred deletions later. Never throws. */
  isBackupRunning(): boolean
  /** Deletes the deferred bytes if no backup blocks deletions any more. */
  retry(): Promise<void>
}

/** Milliseconds between reports of the same failure. */
const reportInterval = 60_000

/**
 * Defers deletions while a backup runs (docs/interface.md F6). If the check fails, deletions are deferred too; the failure is
 * reported immediately, then once a minute.
 */
export function createDeferredDeletions(
  parts: BlobDeletionParts & {
    readonly catalog: Pick<Catalog, 'listTombstones'>
    readonly onHoldFailure: (error: unknown) => void
    readonly now?: () => number
  },
): DeferredDeletions {
  const now = parts.now ?? (() => performance.now())
  let hasDeferred = false
  let reportedAt = Number.NEGATIVE_INFINITY

  function check(): boolean {
    try {
      const held = parts.isBackupRunning()
      reportedAt = Number.NEGATIVE_INFINITY
      return held
    } catch (error) {
      if (now() - reportedAt >= reportInterval) {
        reportedAt = now()
        parts.onHoldFailure(error)
      }
      return true
    }
  }

  const isBackupRunning = () => {
    const held = check()
    hasDeferred ||= held
    return held
  }
  return {
    isBackupRunning,
    async retry() {
      if (!hasDeferred || isBackupRunning()) return
      hasDeferred = false
      await deleteBlobs({ ...parts, isBackupRunning }, await parts.catalog.listTombstones())
    },
  }
}

/** Milliseconds from the record of an intent to its deadline. A store extends the deadline while it receives bytes. */
const intentLifetime = 3_600_000

/** Milliseconds between sweeps. Stores extend deadlines more often. */
export const intentSweepInterval = 600_000

/** Intents in one transaction. Those of unfinished uploads are among them, and stay. */
const intentsPerBatch = 500

/** The intents of a blob store, recorded in the catalog. */
export const intentLog = (
  catalog: Pick<Catalog, 'addIntents' | 'clearIntents'>,
  lifetime = intentLifetime,
): IntentLog => ({
  record: (ids) => catalog.addIntents(ids, lifetime),
  clear: (ids) => catalog.clearIntents(ids),
})

/**
 * Creates the sweep that removes blobs that no item has: those of intents whose deadline has passed. First a transaction reserves the
 * ids permanently, so that a late commit of an upload fails. Then the blobs are removed, then the intents. The sweep takes an
 * intent only if the previous sweep found it expired too: if the clock is set forward, uploads in progress extend their deadlines between
 * the two. It stops at the first error of the catalog. Returns the number of removed intents.
 */
export function createIntentSweep(parts: {
  readonly catalog: Pick<Catalog, 'expiredIntents' | 'retireIntents' | 'clearIntents'>
  readonly blobs: Pick<BlobStore, 'removeInterrupted' | 'removalsAtOnce'>
  /** Receives each id whose blob stays until a later sweep, and the error. */
  readonly onDeletionFailure: (id: ItemId, error: unknown) => void
}): (isStopping?: () => boolean) => Promise<number> {
  const { catalog, blobs, onDeletionFailure } = parts
  let found = new Set<ItemId>()

  return async (isStopping = () => false) => {
    const expired = await catalog.expiredIntents()
    const candidates = expired.filter((id) => found.has(id))
    found = new Set(expired)
    let count = 0
    for (let done = 0; !isStopping() && done < candidates.length; done += intentsPerBatch) {
      const retired = await catalog.retireIntents(candidates.slice(done, done + intentsPerBatch))
      const removed = await removeEach(
        retired,
        blobs.removalsAtOnce,
        (id) => blobs.removeInterrupted(id),
        onDeletionFailure,
      )
      if (removed.length > 0) await catalog.clearIntents(removed)
      count += removed.length
    }
    return count
  }
}
