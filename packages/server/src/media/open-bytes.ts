import type { BlobStore, OpenBlob } from '../blobs/blobs.ts'
import type { Catalog, Media } from '../catalog/catalog.ts'
import { Fault } from '../core/fault.ts'
import { mediaUnknown } from './find-media.ts'

/**
 * Opens an item's bytes. Throws Fault `bytes-missing` if they are missing, have the wrong length, or fsck has marked them
 * as damaged (docs/interface.md B9, F3).
 */
export function openBytesOperation(parts: {
  readonly catalog: Pick<Catalog, 'media'>
  readonly blobs: Pick<BlobStore, 'open'>
}): (media: Media) => Promise<OpenBlob> {
  const { catalog, blobs } = parts
  const damaged = () => new Fault('bytes-missing', 'The bytes of this item are damaged on the server.')
  return async (media) => {
    if (media.isDamaged) throw damaged()
    const blob = await blobs.open(media.id)
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
