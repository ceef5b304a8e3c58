import type { FileSystemSpace } from '../../core/file-system-space.ts'
import type { FreeSpace } from './free-space.ts'

/**
 * Returns a check that calls `onFull` when a disk becomes too full for uploads, and `onFreed` when all disks have enough space again. If
 * they have, the check also recreates the ballast.
 */
export function createFreeSpaceMonitor(parts: {
  readonly space: FreeSpace
  readonly ensureBallast: () => Promise<void>
  readonly onFull: (full: readonly FileSystemSpace[]) => void
  readonly onFreed: () => void
}): () => Promise<void> {
  let isFull = false
  return async () => {
    const full = parts.space.read().filter(({ free, reserve }) => free < reserve)
    if (full.length > 0 && !isFull) parts.onFull(full)
    if (full.length === 0 && isFull) parts.onFreed()
    isFull = full.length > 0
    if (!isFull) await parts.ensureBallast()
  }
}
