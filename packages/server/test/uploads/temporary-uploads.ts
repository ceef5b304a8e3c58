import type { UploadId } from '../../src/core/ids.ts'
import { service } from '../../src/core/token-rules.ts'
import type { BlobStore } from '../../src/storage/blobs/blobs.ts'
import type { Catalog } from '../../src/storage/catalog/catalog.ts'
import type { BucketId, TokenId } from '../../src/storage/catalog/records.ts'
import { appendUploadOperation } from '../../src/uploads/resumable-chunks.ts'
import {
  createUploadOperation,
  removeExpiredUploads,
  removeUploadOperation,
} from '../../src/uploads/resumable-uploads.ts'
import { OwnUploadLocks } from '../../src/uploads/upload-locks.ts'
import { chunksOf } from '../storage/blobs/blob-contract.ts'
import { withMethods } from '../with-methods.ts'
import type { TemporaryData } from './temporary-media.ts'

export const expiry = 1_000

/** The operations on uploads, with replaced parts of the catalog, the blobs and the removal of items. */
export function uploadsOf(
  data: TemporaryData,
  change: {
    catalog?: Partial<Catalog>
    blobs?: Partial<BlobStore>
    removeItem?: (bucketId: BucketId, id: string) => Promise<void>
  } = {},
) {
  const time = { now: 5_000 }
  const locks = new OwnUploadLocks()
  const parts = {
    catalog: { ...data.catalog, ...change.catalog },
    blobs: withMethods(data.blobs, change.blobs ?? {}),
    newReceiver: data.newReceiver,
    measurePicture: data.measurePicture,
    readTaken: data.readTaken,
    removeMetadata: data.removeMetadata,
    onStored: data.onStored,
    space: data.space,
    locks,
    maxFileSize: 1e9,
    expiry,
    now: () => time.now,
  }
  const append = appendUploadOperation(parts)
  return {
    time,
    locks,
    create: async (bucketId: BucketId, length: number | null) => {
      const request = {
        length,
        metadata: null,
        filename: '../a.txt',
        declaredType: 'text/plain',
      }
      return (
        await createUploadOperation(parts)({ bucketId, tokenId: 'tok_0' as TokenId, limits: null }, request)
      ).id
    },
    append: (id: UploadId, offset: number, source: AsyncIterable<Uint8Array>, isAtomic = false) =>
      append(id, { offset, source, isAtomic, by: service, removesMetadata: false, limits: null }),
    declare: (id: UploadId, length: number) =>
      append(id, {
        ...{ offset: 0, source: nothing(), isAtomic: false, length },
        ...{ by: service, removesMetadata: false, limits: null },
      }),
    remove: removeUploadOperation({ ...parts, removeItem: change.removeItem ?? (async () => undefined) }),
    removeExpiredUploads: (isStopping = () => false) => removeExpiredUploads({ ...parts, isStopping }),
  }
}

export async function openUpload(
  data: TemporaryData,
  length: number | null,
  change?: Parameters<typeof uploadsOf>[1],
) {
  const uploads = uploadsOf(data, change)
  const bucketId = await data.bucket('default')
  return { ...uploads, bucketId, id: await uploads.create(bucketId, length) }
}

export const nothing = () => chunksOf(Buffer.alloc(0))
