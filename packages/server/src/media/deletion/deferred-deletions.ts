import type { Catalog } from '../../catalog/catalog.ts'
import { type BlobDeletionParts, deleteBlobs } from './delete-blobs.ts'

interface DeferredDeletions {
  /** True while removals must wait. Never throws. */
  isHeldByBackup(): boolean
  /** Removes the bytes that had to wait, once nothing holds them any more. */
  retry(): Promise<void>
}

/** Milliseconds between two reports of one failure. */
const reportInterval = 60_000

/**
 * Bytes that a backup holds are removed after its end, however it ends (docs/interface.md F6). An error of the check
 * counts as held too, since bytes that stay can be removed later; it is reported at once, then once a minute.
 */
export function createDeferredDeletions(
  parts: BlobDeletionParts & {
    readonly catalog: Pick<Catalog, 'tombstones'>
    readonly onHoldFailure: (error: unknown) => void
    readonly now?: () => number
  },
): DeferredDeletions {
  const now = parts.now ?? (() => performance.now())
  let waiting = false
  let reported = Number.NEGATIVE_INFINITY

  function check(): boolean {
    try {
      const held = parts.isHeldByBackup()
      reported = Number.NEGATIVE_INFINITY
      return held
    } catch (error) {
      if (now() - reported >= reportInterval) {
        reported = now()
        parts.onHoldFailure(error)
      }
      return true
    }
  }

  const isHeldByBackup = () => {
    const held = check()
    waiting ||= held
    return held
  }
  return {
    isHeldByBackup,
    async retry() {
      if (!waiting || isHeldByBackup()) return
      waiting = false
      await deleteBlobs({ ...parts, isHeldByBackup }, await parts.catalog.tombstones())
    },
  }
}
