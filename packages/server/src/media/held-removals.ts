import type { Catalog } from '../catalog/catalog.ts'
import { type EraseParts, eraseBytes } from './erase-bytes.ts'

interface HeldRemovals {
  /** True while removals must wait. Never throws. */
  isHeld(): boolean
  /** Removes the bytes that had to wait, once nothing holds them any more. */
  retry(): Promise<void>
}

/** Milliseconds between two reports of one failure. */
const reportInterval = 60_000

/**
 * Bytes that a backup holds are removed after its end, however it ends (docs/interface.md F6). An error of the check
 * counts as held too, since bytes that stay can be removed later; it is reported at once, then once a minute.
 */
export function createHeldRemovals(
  parts: EraseParts & {
    readonly catalog: Pick<Catalog, 'tombstones'>
    readonly onHoldFailure: (error: unknown) => void
    readonly now?: () => number
  },
): HeldRemovals {
  const now = parts.now ?? (() => performance.now())
  let waiting = false
  let reported = Number.NEGATIVE_INFINITY

  function check(): boolean {
    try {
      const held = parts.isHeld()
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

  const isHeld = () => {
    const held = check()
    waiting ||= held
    return held
  }
  return {
    isHeld,
    async retry() {
      if (!waiting || isHeld()) return
      waiting = false
      await eraseBytes({ ...parts, isHeld }, await parts.catalog.tombstones())
    },
  }
}
