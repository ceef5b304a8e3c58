import type { BlobStore, OpenBlob } from '../blobs/blobs.ts'
import { openMemoryBlob } from '../blobs/memory-blob.ts'
import type { Catalog, Media } from '../catalog/catalog.ts'
import { Fault } from '../core/fault.ts'
import { mediaUnknown } from './find-media.ts'

/**
 * Opens an item's bytes. Throws Fault `bytes-missing` if they are missing, have the wrong length, or fsck has marked them
 * as damaged (docs/interface.md B9, F3).
 */
export function openBytesOperation(parts: {
  readonly catalog: Pick<Catalog, 'media' | 'content'>
  readonly blobs: Pick<BlobStore, 'open'>
}): (media: Media) => Promise<OpenBlob> {
  const { catalog, blobs } = parts
  const damaged = () => new Fault('bytes-missing', 'The bytes of this item are damaged on the server.')

  async function open({ id, contentId }: Media): Promise<OpenBlob | null> {
    if (contentId === null) return blobs.open(id)
    const bytes = await catalog.content(contentId)
    return bytes && openMemoryBlob(bytes)
  }

  return async (media) => {
    if (media.isDamaged) throw damaged()
    const blob = await open(media)
    if (blob === null) {
      // The item may have been deleted since its row was read.
      if ((await catalog.media(media.id)) === null) throw mediaUnknown()
      throw new Fault('bytes-missing', 'The bytes of this item are missing on the server.')
    }
    if (blob.size !== media.size) {
      await blob.close()
      throw damaged()
    }
    return blob
  }
}
