import type { BlobStore } from '../blobs/blobs.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { MediaId } from '../core/media-id.ts'
import { eraseBytes } from './erase-bytes.ts'

interface Leftover {
  readonly id: MediaId
  readonly error: unknown
}

/**
 * Finishes what an earlier process left undone, at start and before anything is served: drops temporary bytes, and
 * removes the bytes of removed items. Says how many of each, and which bytes wait for the next start, and why.
 */
export async function recover(parts: {
  readonly catalog: Pick<Catalog, 'tombstones' | 'clearTombstones'>
  readonly blobs: Pick<BlobStore, 'recover' | 'remove'>
}): Promise<{ temporary: number; tombstones: number; leftovers: Leftover[] }> {
  const leftovers: Leftover[] = []
  const onLeftover = (id: MediaId, error: unknown): void => {
    leftovers.push({ id, error })
  }
  const temporary = await parts.blobs.recover()
  const tombstones = await eraseBytes({ ...parts, onLeftover }, await parts.catalog.tombstones())
  return { temporary, tombstones, leftovers }
}
