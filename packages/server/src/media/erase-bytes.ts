import type { BlobStore } from '../blobs/blobs.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { settleAll } from '../core/in-parallel.ts'
import type { MediaId } from '../core/media-id.ts'

export interface EraseParts {
  readonly catalog: Pick<Catalog, 'clearTombstones'>
  readonly blobs: Pick<BlobStore, 'remove'>
  /** True while a backup needs the bytes of items that were there when it began. */
  readonly isHeld: () => boolean
  /** Hears of each id whose tombstone stays for the next start, and why. */
  readonly onLeftover: (id: MediaId, error: unknown) => void
}

/** Few, so that uploads find threads for their syncs. */
const removalsAtOnce = 2

/**
 * Removes the bytes of removed items, and then, never before, their tombstones; says how many: none while removals are
 * held (docs/interface.md F6). Does not throw.
 */
export async function eraseBytes(parts: EraseParts, ids: readonly MediaId[]): Promise<number> {
  const { catalog, blobs, isHeld, onLeftover } = parts
  // After the rows were removed: a backup that begins after this look does not name them any more.
  if (isHeld()) return 0
  const results = await settleAll(ids, removalsAtOnce, async (id) => {
    try {
      await blobs.remove(id)
      return id
    } catch (error) {
      onLeftover(id, error)
      return null
    }
  })
  const erased = results.flatMap((result) =>
    result.status === 'fulfilled' && result.value !== null ? [result.value] : [],
  )
  if (erased.length === 0) return 0
  try {
    await catalog.clearTombstones(erased)
    return erased.length
  } catch (error) {
    for (const id of erased) onLeftover(id, error)
    return 0
  }
}
