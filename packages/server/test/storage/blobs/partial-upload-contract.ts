import { createHash, randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { Fault } from '../../../src/core/faults.ts'
import { headLength, type PartialChunk, PartialUploadLost } from '../../../src/storage/blobs/blobs.ts'
import { chunksOf, type OpenedStore, readBytes } from './blob-contract.ts'

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest()

/** A chunk of which all bytes count that arrive. */
export const plainChunk = (
  offset: number,
  source: AsyncIterable<Uint8Array>,
  limit = Number.MAX_SAFE_INTEGER,
): PartialChunk => ({ offset, source, limit, isAtomic: false, expiresAt: () => Date.now() + 3_600_000 })

/** The behaviour of every blob engine with resumable uploads. */
export function describePartialUploads(engine: string, openStore: () => Promise<OpenedStore>): void {
  describe(`${engine}: partial uploads`, () => {
    test.each([1, 7, headLength, 300_000, 9_000_000])(
      'R5 chunks of %d bytes become the complete file',
      async (length) => {
        await using opened = await openStore()
        const { partialUploads } = opened.store
        const bytes = randomBytes(length > 300_000 ? 20_000_000 : Math.min(300_000, length * 5))
        const upload = await opened.newUpload(bytes.length)
        for (let offset = 0; offset < bytes.length; offset += length) {
          const source = chunksOf(bytes.subarray(offset, offset + length), 65_536)
          const size = Math.min(offset + length, bytes.length)
          const appended = await partialUploads.append(upload, plainChunk(offset, source))
          expect(appended).toMatchObject({ size, failure: null })
        }
        const received = await partialUploads.complete(upload.id, bytes.length, upload.itemId)
        expect([received.id, received.size]).toEqual([upload.itemId, bytes.length])
        expect(Buffer.from(received.sha256)).toEqual(sha256(bytes))
        expect(Buffer.from(received.head).equals(bytes.subarray(0, headLength))).toBe(true)
        const slice = (await opened.store.peek(received)).slice(bytes.length - 3)
        expect(Buffer.from(await slice.arrayBuffer())).toEqual(bytes.subarray(bytes.length - 3))
        await opened.store.commit([received])
        expect((await readBytes(opened.store, upload.itemId))?.equals(bytes)).toBe(true)
      },
    )

    test('R5 an upload of 0 bytes becomes an empty file', async () => {
      await using opened = await openStore()
      const upload = await opened.newUpload(0)
      const { partialUploads } = opened.store
      expect(await partialUploads.append(upload, plainChunk(0, chunksOf(Buffer.alloc(0))))).toMatchObject({
        size: 0,
        failure: null,
      })
      const received = await partialUploads.complete(upload.id, 0, upload.itemId)
      expect(Buffer.from(received.sha256)).toEqual(sha256(Buffer.alloc(0)))
      await opened.store.commit([received])
    })

    test('R6 if the source fails, the bytes received before are stored, and the upload resumes after them', async () => {
      await using opened = await openStore()
      const { partialUploads } = opened.store
      const upload = await opened.newUpload(5_000)
      const failure = new Error('gone')
      const bytes = randomBytes(5_000)
      const broken = chunksOf(bytes.subarray(0, 3_000), 1_000, failure)
      expect(await partialUploads.append(upload, plainChunk(0, broken))).toMatchObject({
        size: 3_000,
        failure,
      })
      await partialUploads.append(upload, plainChunk(3_000, chunksOf(bytes.subarray(3_000))))
      const { sha256: hash } = await partialUploads.complete(upload.id, 5_000, upload.itemId)
      expect(Buffer.from(hash)).toEqual(sha256(bytes))
    })

    test('U6 a chunk that exceeds the limit is discarded', async () => {
      await using opened = await openStore()
      const { partialUploads } = opened.store
      const upload = await opened.newUpload(20)
      await partialUploads.append(upload, plainChunk(0, chunksOf(randomBytes(10)), 10))
      const tooMuch = partialUploads.append(upload, plainChunk(10, chunksOf(randomBytes(11), 5), 10))
      await expect(tooMuch).rejects.toThrow(Fault)
      expect(await partialUploads.append(upload, plainChunk(10, chunksOf(Buffer.alloc(0))))).toMatchObject({
        size: 10,
        failure: null,
      })
    })

    test('R5 a small complete upload is read into memory', async () => {
      await using opened = await openStore()
      const { partialUploads } = opened.store
      const upload = await opened.newUpload(2_000)
      const bytes = randomBytes(2_000)
      await partialUploads.append(upload, plainChunk(0, chunksOf(bytes.subarray(0, 900))))
      await partialUploads.append(upload, plainChunk(900, chunksOf(bytes.subarray(900))))
      expect(Buffer.from(await partialUploads.read(upload.id, 2_000))).toEqual(bytes)
    })

    test('R9 a removed upload is lost, and removing a missing upload succeeds', async () => {
      await using opened = await openStore()
      const { partialUploads } = opened.store
      const upload = await opened.newUpload(5)
      await partialUploads.append(upload, plainChunk(0, chunksOf(randomBytes(5))))
      await partialUploads.remove(upload.id)
      await partialUploads.remove(upload.id)
      await expect(partialUploads.complete(upload.id, 5, upload.itemId)).rejects.toThrow(PartialUploadLost)
    })
  })
}
