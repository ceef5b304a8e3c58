import { setTimeout as sleep } from 'node:timers/promises'
import type { CatalogVacuum } from '../catalog/vacuum.ts'

/** Milliseconds between two steps, in which a running server can write. */
const pause = 5

/**
 * Returns all free space of the catalog to the file system. A catalog of an earlier version is rewritten, for which no server
 * may run: `lock` throws then. Returns the size of the catalog before and after, in bytes.
 */
export async function vacuumCatalog(parts: {
  readonly vacuum: CatalogVacuum
  readonly lock: () => { release(): void }
  /** Bytes that have been released, and bytes that were free. */
  readonly onProgress: (done: number, of: number) => void
  /** Called with the size in bytes before the catalog is rewritten. */
  readonly onRewrite: (size: number) => void
}): Promise<{ readonly before: number; readonly after: number }> {
  const { vacuum, onProgress } = parts
  const { size: before, free } = vacuum.space()
  if (vacuum.canReleaseInSteps) {
    // A running server may free further pages, which are left for later.
    for (let left = free; left > 0; ) {
      vacuum.releaseSome()
      onProgress(Math.max(0, free - left), free)
      const now = vacuum.space().free
      if (now >= left) break
      left = now
      await sleep(pause)
    }
  } else {
    const lock = parts.lock()
    try {
      parts.onRewrite(before)
      vacuum.rewrite()
    } finally {
      lock.release()
    }
  }
  vacuum.finish()
  return { before, after: vacuum.space().size }
}
