import type { BlobStore } from '../blobs/blobs.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { MediaId } from '../core/media-id.ts'
import { eraseBytes } from './erase-bytes.ts'

interface Leftover {
  readonly id: MediaId
  readonly error: unknown
}

/**
 * Finishes what an earlier process left undone, at start and before anything is served: drops temporary bytes, removes
 * the bytes of removed items, and lets uploads in pieces and their files agree. Says how many of each, and which bytes
 * wait for the next start, and why.
 */
export async function recover(parts: {
  readonly catalog: Pick<Catalog, 'tombstones' | 'clearTombstones' | 'unfinishedUploads' | 'moveUpload'>
  readonly blobs: Pick<BlobStore, 'parts' | 'recover' | 'remove'>
  readonly isHeld: () => boolean
}): Promise<{ temporary: number; tombstones: number; rewound: number; leftovers: Leftover[] }> {
  const leftovers: Leftover[] = []
  const onLeftover = (id: MediaId, error: unknown): void => {
    leftovers.push({ id, error })
  }
  const temporary = await parts.blobs.recover()
  const tombstones = await eraseBytes({ ...parts, onLeftover }, await parts.catalog.tombstones())
  return { temporary, tombstones, rewound: await rewindUploads(parts), leftovers }
}

/** An offset never tells of more than its file has. */
async function rewindUploads({ catalog, blobs }: Parameters<typeof recover>[0]): Promise<number> {
  const uploads = await catalog.unfinishedUploads()
  const short = await blobs.parts.recover(uploads)
  for (const { id, offset, expiresAt } of uploads) {
    const size = short.get(id)
    if (size !== undefined) await catalog.moveUpload(id, offset, size, expiresAt)
  }
  return short.size
}
