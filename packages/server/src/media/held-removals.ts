import type { Catalog } from '../catalog/catalog.ts'
import { type EraseParts, eraseBytes } from './erase-bytes.ts'

interface HeldRemovals {
  /** What the parts say, remembered when it is yes. */
  isHeld(): boolean
  /** Removes what was held, if anything was and nothing holds it any more. */
  retry(): Promise<void>
}

/** What a backup held up is removed after its end, however that came (docs/interface.md F6). */
export function createHeldRemovals(
  parts: EraseParts & { readonly catalog: Pick<Catalog, 'tombstones'> },
): HeldRemovals {
  let held = false
  const isHeld = () => {
    const now = parts.isHeld()
    held ||= now
    return now
  }
  return {
    isHeld,
    async retry() {
      if (!held || isHeld()) return
      held = false
      await eraseBytes({ ...parts, isHeld }, await parts.catalog.tombstones())
    },
  }
}
