import { randomBytes } from 'node:crypto'
import sharp from 'sharp'
import { expect, test } from 'vitest'
import { hasCeph } from '../../../../../test/harness/ceph.ts'
import { service } from '../../../src/core/actor.ts'
import { createPictureWorkers } from '../../../src/media/pictures/picture-workers.ts'
import { removeMetadataOperation } from '../../../src/media/pictures/remove-metadata.ts'
import { createFileReceivers } from '../../../src/media/receive-files.ts'
import { appendUploadOperation } from '../../../src/media/uploads/append-upload.ts'
import { createUploadLocks } from '../../../src/media/uploads/upload-locks.ts'
import { chunksOf, readBytes } from '../../blobs/blob-contract.ts'
import { temporaryS3Store } from '../../blobs/temporary-s3-store.ts'

test.skipIf(!hasCeph)(
  'X2, X4 a resumable upload to an S3 store leaves only the object without metadata, and none if it is refused',
  async () => {
    await using opened = await temporaryS3Store()
    const { catalog, store: blobs } = opened
    const limits = { workers: 1, queue: 10, queueTimeout: 60_000, timeout: 60_000, memory: 6e8, niceness: 0 }
    const workers = createPictureWorkers(limits)
    try {
      const append = appendUploadOperation({
        ...{ catalog, blobs, newReceiver: createFileReceivers({ blobs, inlineSize: 0 }), maxFileSize: 1e9 },
        ...{ measurePicture: async () => null, locks: createUploadLocks(), expiry: 3_600_000, now: Date.now },
        onStored: () => undefined,
        removeMetadata: removeMetadataOperation({ blobs, workers, now: Date.now }),
      })
      const side = 1_000
      const sent = await sharp(randomBytes(side * side * 3), {
        raw: { width: side, height: side, channels: 3 },
      })
        .withExif({ IFD0: { Make: 'SecretMake' } })
        .jpeg({ quality: 95 })
        .toBuffer()
      const send = async (bytes: Buffer) => {
        const upload = await opened.newUpload(bytes.length)
        const source = chunksOf(bytes, 65_536)
        const chunk = { offset: 0, source, isAtomic: false, by: service, removesMetadata: true }
        return { upload, appended: await append(upload.id, chunk) }
      }

      const { upload, appended } = await send(sent)
      const { item } = appended
      if (item === null) throw new Error('the upload is not finished')
      expect(item.id).not.toBe(upload.mediaId)
      expect(await catalog.upload(upload.id)).toMatchObject({ mediaId: item.id, offset: sent.length })
      const stored = await readBytes(blobs, item.id)
      expect([stored?.length, stored?.includes('SecretMake')]).toEqual([item.size, false])
      expect(await opened.count()).toBe(1)

      const damaged = Buffer.concat([sent.subarray(0, 300), randomBytes(100_000)])
      await expect(send(damaged)).rejects.toMatchObject({ code: 'file-unreadable' })
      expect(await opened.count()).toBe(1)
    } finally {
      workers.close()
    }
  },
)
