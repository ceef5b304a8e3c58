import type { Catalog } from '../../catalog/catalog.ts'
import { type BlobDeletionParts, deleteBlobs } from './delete-blobs.ts'

interface DeferredDeletions {
  /** True while a backup blocks deletions; `retry` then runs them later. Never throws. */
  isHeldByBackup(): boolean
  /** Deletes the deferred bytes if no backup blocks deletions any more. */
  retry(): Promise<void>
}

/** Milliseconds between reports of the same failure. */
const reportInterval = 60_000

/**
 * Defers deletions while a backup runs (docs/interface.md F6). If the check fails, deletions are deferred too; the failure is
 * reportedAt immediately, then once a minute.
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
      const held = parts.isHeldByBackup()
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

  const isHeldByBackup = () => {
    const held = check()
    hasDeferred ||= held
    return held
  }
  return {
    isHeldByBackup,
    async retry() {
      if (!hasDeferred || isHeldByBackup()) return
      hasDeferred = false
      await deleteBlobs({ ...parts, isHeldByBackup }, await parts.catalog.tombstones())
    },
  }
}
