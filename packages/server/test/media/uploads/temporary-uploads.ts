import type { BlobStore } from '../../../src/blobs/blobs.ts'
import type { BucketId, Catalog } from '../../../src/catalog/catalog.ts'
import { newUploadId, type UploadId } from '../../../src/core/upload-id.ts'
import { createAppendUpload } from '../../../src/media/uploads/append-upload.ts'
import { createCreateUpload } from '../../../src/media/uploads/create-upload.ts'
import { createRemoveUpload } from '../../../src/media/uploads/remove-upload.ts'
import { sweep } from '../../../src/media/uploads/sweep.ts'
import { createUploadTurns } from '../../../src/media/uploads/upload-turns.ts'
import { chunksOf } from '../../blobs/blob-contract.ts'
import type { TemporaryMedia } from '../temporary-media.ts'

export const expiry = 1_000

/** The operations on uploads, with parts of the catalog and the blobs replaced. */
export function uploadsOf(
  media: TemporaryMedia,
  change: { catalog?: Partial<Catalog>; blobs?: Partial<BlobStore> } = {},
) {
  const time = { now: 5_000 }
  const turns = createUploadTurns()
  const parts = {
    catalog: { ...media.catalog, ...change.catalog },
    blobs: { ...media.blobs, ...change.blobs },
    measurePicture: media.measurePicture,
    turns,
    maxFileSize: 1e9,
    expiry,
    now: () => time.now,
  }
  const append = createAppendUpload(parts)
  return {
    time,
    turns,
    create: async (bucketId: BucketId, length: number | null) => {
      const request = {
        id: newUploadId(),
        length,
        metadata: null,
        filename: '../a.txt',
        declaredType: 'text/plain',
      }
      return (await createCreateUpload(parts)(bucketId, request)).id
    },
    append: (id: UploadId, offset: number, source: AsyncIterable<Uint8Array>, whole = false) =>
      append(id, { offset, source, whole }),
    remove: createRemoveUpload({ ...parts, removeMedia: async () => undefined }),
    sweep: () => sweep(parts),
  }
}

export async function openUpload(
  media: TemporaryMedia,
  length: number | null,
  change?: Parameters<typeof uploadsOf>[1],
) {
  const uploads = uploadsOf(media, change)
  const bucketId = await media.bucket('default')
  return { ...uploads, bucketId, id: await uploads.create(bucketId, length) }
}

export const nothing = () => chunksOf(Buffer.alloc(0))
