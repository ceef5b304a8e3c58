import type { FileSystemSpace } from '../../core/file-system-space.ts'
import type { FreeSpace } from './free-space.ts'

/** Reports once when the disk becomes too full for uploads, and once when it is not any more. Recreates the ballast then. */
export function createFreeSpaceMonitor(parts: {
  readonly space: FreeSpace
  readonly ensureBallast: () => Promise<void>
  readonly onFull: (full: readonly FileSystemSpace[]) => void
  readonly onRoom: () => void
}): () => Promise<void> {
  let isFull = false
  return async () => {
    const full = parts.space.read().filter(({ free, reserve }) => free < reserve)
    if (full.length > 0 && !isFull) parts.onFull(full)
    if (full.length === 0 && isFull) parts.onRoom()
    isFull = full.length > 0
    if (!isFull) await parts.ensureBallast()
  }
}
