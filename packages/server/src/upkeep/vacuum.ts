import { setTimeout as sleep } from 'node:timers/promises'
import type { CatalogVacuum } from '../storage/catalog/upkeep.ts'

/** Milliseconds between two steps, in which a running server can write. */
const pause = 5

/** Returns all free space of the catalog to the file system. Returns the size of the catalog before and after, in bytes. */
export async function vacuumCatalog(
  vacuum: CatalogVacuum,
  /** Bytes that have been released, and bytes that were free. */
  onProgress: (done: number, of: number) => void,
): Promise<{ readonly before: number; readonly after: number }> {
  const { size: before, free } = vacuum.space()
  // A running server may free further pages, which are left for later.
  for (let left = free; left > 0; ) {
    vacuum.releaseSome()
    onProgress(Math.max(0, free - left), free)
    const now = vacuum.space().free
    if (now >= left) break
    left = now
    await sleep(pause)
  }
  vacuum.finish()
  return { before, after: vacuum.space().size }
}
