import type { Catalog } from '../../catalog/catalog.ts'
import { type BlobDeletionParts, deleteBlobs } from './delete-blobs.ts'

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
    readonly catalog: Pick<Catalog, 'tombstones'>
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
      await deleteBlobs({ ...parts, isBackupRunning }, await parts.catalog.tombstones())
    },
  }
}
