import type { BlobStore, OpenBlob } from '../blobs/blobs.ts'
import { openMemoryBlob } from '../blobs/memory-blob.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Item } from '../catalog/records.ts'
import { Fault } from '../core/fault.ts'
import { itemUnknown } from './find-media.ts'

/** If the item has at most `wholeUpTo` bytes (0 by default), the blob may hold them in memory. */
export type OpenBytes = (item: Item, wholeUpTo?: number) => Promise<OpenBlob>

/**
 * Opens an item's bytes. Throws Fault `bytes-missing` if they are missing, have the wrong length, or fsck has marked them
 * as damaged (docs/interface.md B9, F3).
 */
export function openBytesOperation(parts: {
  readonly catalog: Pick<Catalog, 'item' | 'content'>
  readonly blobs: Pick<BlobStore, 'open'>
}): OpenBytes {
  const { catalog, blobs } = parts
  const damaged = () => new Fault('bytes-missing', 'The bytes of this item are damaged on the server.')

  async function open({ id, contentId }: Item, wholeUpTo: number): Promise<OpenBlob | null> {
    if (contentId === null) return blobs.open(id, wholeUpTo)
    const bytes = await catalog.content(contentId)
    return bytes && openMemoryBlob(bytes)
  }

  return async (item, wholeUpTo = 0) => {
    if (item.isDamaged) throw damaged()
    const blob = await open(item, wholeUpTo)
    if (blob === null) {
      // The item may have been deleted since its row was read.
      if ((await catalog.item(item.id)) === null) throw itemUnknown()
      throw new Fault('bytes-missing', 'The bytes of this item are missing on the server.')
    }
    if (blob.size !== item.size) {
      await blob.close()
      throw damaged()
    }
    return blob
  }
}
