import { createHash, randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { headLength, PartialUploadLost } from '../../src/blobs/blobs.ts'
import { Fault } from '../../src/core/fault.ts'
import { newMediaId } from '../../src/core/media-id.ts'
import { newUploadId } from '../../src/core/upload-id.ts'
import { chunksOf, type OpenedStore, readBytes } from './blob-contract.ts'

const limit = Number.MAX_SAFE_INTEGER
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest()

/** The behaviour of every blob engine with resumable uploads. */
export function describePartialUploads(engine: string, openStore: () => Promise<OpenedStore>): void {
  describe(`${engine}: partial uploads`, () => {
    test.each([1, 7, headLength, 300_000])(
      'R5 chunks of %d bytes become the complete file',
      async (length) => {
        await using opened = await openStore()
        const { partialUploads } = opened.store
        const [id, mediaId] = [newUploadId(), newMediaId()]
        const bytes = randomBytes(Math.min(300_000, length * 5))
        for (let offset = 0; offset < bytes.length; offset += length) {
          const source = chunksOf(bytes.subarray(offset, offset + length))
          const size = Math.min(offset + length, bytes.length)
          expect(await partialUploads.append(id, { offset, source, limit })).toEqual({ size, failure: null })
        }
        const received = await partialUploads.complete(id, bytes.length, mediaId)
        expect(received.size).toBe(bytes.length)
        expect(Buffer.from(received.sha256)).toEqual(sha256(bytes))
        expect(Buffer.from(received.head)).toEqual(bytes.subarray(0, headLength))
        expect(Buffer.from(await (await opened.store.peek(received)).arrayBuffer())).toEqual(bytes)
        await opened.store.commit([received])
        expect(await readBytes(opened.store, mediaId)).toEqual(bytes)
      },
    )

    test('R5 an upload of 0 bytes becomes an empty file', async () => {
      await using opened = await openStore()
      const [id, mediaId] = [newUploadId(), newMediaId()]
      expect(
        await opened.store.partialUploads.append(id, { offset: 0, source: chunksOf(Buffer.alloc(0)), limit }),
      ).toEqual({
        size: 0,
        failure: null,
      })
      const received = await opened.store.partialUploads.complete(id, 0, mediaId)
      expect(Buffer.from(received.sha256)).toEqual(sha256(Buffer.alloc(0)))
      await opened.store.commit([received])
    })

    test('R6 if the source fails, the bytes received before are stored, and the upload resumes after them', async () => {
      await using opened = await openStore()
      const { partialUploads } = opened.store
      const [id, mediaId] = [newUploadId(), newMediaId()]
      const failure = new Error('gone')
      const bytes = randomBytes(5_000)
      const broken = chunksOf(bytes.subarray(0, 3_000), 1_000, failure)
      expect(await partialUploads.append(id, { offset: 0, source: broken, limit })).toEqual({
        size: 3_000,
        failure,
      })
      await partialUploads.append(id, { offset: 3_000, source: chunksOf(bytes.subarray(3_000)), limit })
      expect(Buffer.from((await partialUploads.complete(id, 5_000, mediaId)).sha256)).toEqual(sha256(bytes))
    })

    test('R7 bytes past the offset are dropped, and the hash is that of the file', async () => {
      await using opened = await openStore()
      const { partialUploads } = opened.store
      const [id, mediaId] = [newUploadId(), newMediaId()]
      const bytes = randomBytes(4_000)
      await partialUploads.append(id, { offset: 0, source: chunksOf(bytes.subarray(0, 2_000)), limit })
      await partialUploads.append(id, { offset: 2_000, source: chunksOf(randomBytes(9_000)), limit })
      await partialUploads.append(id, { offset: 2_000, source: chunksOf(bytes.subarray(2_000)), limit })
      const received = await partialUploads.complete(id, 4_000, mediaId)
      expect(Buffer.from(received.sha256)).toEqual(sha256(bytes))
      expect(Buffer.from(await (await opened.store.peek(received)).arrayBuffer())).toEqual(bytes)
    })

    test('U6 a chunk that exceeds the limit is discarded', async () => {
      await using opened = await openStore()
      const { partialUploads } = opened.store
      const id = newUploadId()
      await partialUploads.append(id, { offset: 0, source: chunksOf(randomBytes(10)), limit: 10 })
      const tooMuch = partialUploads.append(id, {
        offset: 10,
        source: chunksOf(randomBytes(11), 5),
        limit: 10,
      })
      await expect(tooMuch).rejects.toThrow(Fault)
      expect(
        await partialUploads.append(id, { offset: 10, source: chunksOf(Buffer.alloc(0)), limit }),
      ).toEqual({
        size: 10,
        failure: null,
      })
    })

    test('an upload with fewer bytes than its offset is lost', async () => {
      await using opened = await openStore()
      const { partialUploads } = opened.store
      const [id, mediaId] = [newUploadId(), newMediaId()]
      await expect(
        partialUploads.append(id, { offset: 1, source: chunksOf(randomBytes(1)), limit }),
      ).rejects.toThrow(PartialUploadLost)
      await partialUploads.append(id, { offset: 0, source: chunksOf(randomBytes(5)), limit })
      await expect(partialUploads.complete(id, 6, mediaId)).rejects.toThrow(PartialUploadLost)
      await expect(
        partialUploads.append(id, { offset: 5, source: chunksOf(randomBytes(1)), limit }),
      ).rejects.toThrow(PartialUploadLost)
    })

    test('R6 a committed upload can be reclaimed and continued', async () => {
      await using opened = await openStore()
      const { partialUploads } = opened.store
      const [id, mediaId] = [newUploadId(), newMediaId()]
      const bytes = randomBytes(3_000)
      await partialUploads.reclaim(id, mediaId)
      await partialUploads.append(id, { offset: 0, source: chunksOf(bytes), limit })
      await opened.store.commit([await partialUploads.complete(id, 3_000, mediaId)])
      await partialUploads.reclaim(id, mediaId)
      await partialUploads.reclaim(id, mediaId)
      expect(await opened.store.open(mediaId)).toBeNull()
      await opened.store.commit([await partialUploads.complete(id, 3_000, mediaId)])
      expect(await readBytes(opened.store, mediaId)).toEqual(bytes)
    })

    test('R9 a removed upload is lost, and removing a missing upload succeeds', async () => {
      await using opened = await openStore()
      const { partialUploads } = opened.store
      const [id, mediaId] = [newUploadId(), newMediaId()]
      await partialUploads.append(id, { offset: 0, source: chunksOf(randomBytes(5)), limit })
      await partialUploads.remove(id)
      await partialUploads.remove(id)
      await expect(partialUploads.complete(id, 5, mediaId)).rejects.toThrow(PartialUploadLost)
    })
  })
}
