import { describe, expect, test } from 'vitest'
import { newUploadId } from '../../../src/core/ids.ts'
import type { Upload } from '../../../src/storage/catalog/uploads.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { allPages, contentOf, inBlobStore, newBucket, newItem, newUpload, withBytes } from './samples.ts'

/** The behaviour of every catalog engine with resumable uploads. */
export function describeUploads(engine: string, fresh: Fresh): void {
  describe(`${engine}: uploads`, () => {
    test('R1 an upload is stored with all fields and visible to every process until it is removed', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const upload = newUpload(bucketId, { length: 2 ** 45 })
      const bare = newUpload(bucketId, { length: null, metadata: null, filename: null, declaredType: null })
      await catalog.createUpload(upload)
      await catalog.createUpload(bare)
      expect(await other.findUpload(upload.id)).toEqual({ ...upload, offset: 0, finished: false })
      expect(await other.findUpload(bare.id)).toEqual({ ...bare, offset: 0, finished: false })
      expect(await catalog.findUpload(newUploadId())).toBeNull()
      expect(await catalog.removeUpload(upload.id)).toBe(true)
      expect(await catalog.removeUpload(upload.id)).toBe(false)
      expect(await other.findUpload(upload.id)).toBeNull()
      expect((await catalog.unfinishedUploads()).map(({ id }) => id)).toEqual([bare.id])
    })

    test('R4 an offset moves only from its current value', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const upload = newUpload(bucketId, { length: 100 })
      await catalog.createUpload(upload)
      const moves = await Promise.all(
        [catalog, other, catalog, other].map((one, i) => one.moveUpload(upload.id, 0, 10 + i, 7)),
      )
      expect(moves.filter(Boolean)).toHaveLength(1)
      const moved = await catalog.findUpload(upload.id)
      expect(moved).toMatchObject({ offset: 10 + moves.indexOf(true), expiresAt: 7 })
      expect(await catalog.moveUpload(newUploadId(), 0, 10, 7)).toBe(false)
      // Only its item makes an upload complete (R5).
      for (const end of [100, 101])
        expect(await catalog.moveUpload(upload.id, moved?.offset ?? 0, end, 7)).toBe(false)
    })

    test('R4 a length that is less than the offset cannot be declared', async () => {
      const { catalog, other } = await openTwo(fresh)
      const upload = newUpload(await newBucket(catalog, 'b'), { length: null })
      await catalog.createUpload(upload)
      expect(await catalog.moveUpload(upload.id, 0, 10, 7)).toBe(true)
      expect(await other.declareLength(upload.id, 9)).toBe(false)
      expect(await other.declareLength(upload.id, 10)).toBe(true)
    })

    test('R5 the item is added and the upload finished in one change', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const upload = newUpload(bucketId, { length: 100 })
      const item = newItem({ id: upload.itemId, size: 100 })
      await catalog.createUpload(upload)
      expect(await catalog.finishUpload(upload.id, { ...newItem({ size: 99 }), bytes: null }, 5)).toBe(false)
      expect(await allPages(catalog, bucketId)).toEqual([])
      expect(await catalog.finishUpload(upload.id, { ...item, bytes: null }, 5)).toBe(true)
      expect(await catalog.findUpload(upload.id)).toMatchObject({ finished: true, offset: 100, expiresAt: 5 })
      expect(await allPages(catalog, bucketId)).toEqual([item.id])
      expect(await catalog.finishUpload(upload.id, { ...newItem({ size: 100 }), bytes: null }, 5)).toBe(false)
      expect(await catalog.moveUpload(upload.id, 100, 0, 5)).toBe(false)
      expect(await catalog.unfinishedUploads()).toEqual([])
      expect(await catalog.removeUpload(upload.id)).toBe(true)
      expect(await allPages(catalog, bucketId)).toEqual([item.id])
    })

    test('R5 the item is added with its bytes', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const item = newItem()
      const upload = newUpload(bucketId, { length: item.size, itemId: item.id })
      await catalog.createUpload(upload)
      expect(await catalog.finishUpload(newUploadId(), withBytes(item), 5)).toBe(false)
      expect(await catalog.finishUpload(upload.id, withBytes(item), 5)).toBe(true)
      const contentId = (await catalog.item(item.id))?.contentId
      expect(contentId && (await catalog.content(contentId))).toEqual(contentOf(item))
    })

    test('R5 an item that cannot be added leaves its upload unfinished', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const upload = newUpload(bucketId, { length: 1_000 })
      const taken = newItem()
      await catalog.addItems(bucketId, inBlobStore([taken]))
      await catalog.createUpload(upload)
      await expect(catalog.finishUpload(upload.id, { ...taken, bytes: null }, 5)).rejects.toThrow()
      expect(await catalog.findUpload(upload.id)).toMatchObject({ finished: false, offset: 0 })
      expect(await catalog.bucket(bucketId)).toMatchObject({
        items: 1,
        reservedItems: 1,
        reservedBytes: 1_000,
      })
    })

    test('R8 expired uploads are found, finished or not', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const uploads = [10, 20, 30].map((expiresAt) => newUpload(bucketId, { expiresAt, length: 1_000 }))
      for (const upload of uploads) await catalog.createUpload(upload)
      const [first, second] = uploads
      if (!first || !second) throw new Error('no upload')
      await catalog.finishUpload(first.id, { ...newItem({ id: first.itemId }), bytes: null }, 15)
      const expired = async (now: number) => (await catalog.expiredUploads(now, 9)).map(({ id }) => id)
      expect(await expired(14)).toEqual([])
      expect(await expired(20)).toEqual([first.id, second.id])
    })

    test('R8 expired uploads are read in parts, also those that expire at the same time', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const uploads = [20, 10, 10, 10, 30].map((expiresAt) => newUpload(bucketId, { expiresAt }))
      for (const upload of uploads) await catalog.createUpload(upload)
      const found: string[] = []
      for (let after: Upload | null = null; ; ) {
        const part: readonly Upload[] = await catalog.expiredUploads(20, 2, after)
        found.push(...part.map(({ id }) => id))
        after = part.at(-1) ?? null
        if (after === null) break
      }
      const ids = uploads.map(({ id }) => id)
      expect([found.length, new Set(found.slice(0, 3)), found[3]]).toEqual([
        4,
        new Set(ids.slice(1, 4)),
        ids[0],
      ])
    })

    test('R6 parts and pieces of an upload are recorded with its offset, until it is finished', async () => {
      const { catalog, other, bucketId, upload } = await openWithUpload(fresh, 100)
      expect(await catalog.findUploadParts(upload.id)).toEqual({ multipart: null, parts: [] })
      expect(await catalog.beginParts(upload.id, 'first')).toBe('first')
      expect(await other.beginParts(upload.id, 'second')).toBe('first')
      const piece = (byte: number, length: number) => new Uint8Array(length).fill(byte)
      const move = (from: number, to: number) => ({ from, to, expiresAt: 1_000 })
      const part = { number: 1, size: 30, etag: '"e"' }
      expect(await catalog.storeParts(upload.id, { parts: [], piece: piece(1, 10) }, move(0, 10))).toBe(true)
      expect(await other.storeParts(upload.id, { parts: [], piece: piece(9, 10) }, move(0, 10))).toBe(false)
      expect(await other.storeParts(upload.id, { parts: [], piece: piece(2, 5) }, move(10, 15))).toBe(true)
      expect(Buffer.concat(await catalog.findUploadPieces(upload.id))).toEqual(
        Buffer.concat([piece(1, 10), piece(2, 5)]),
      )
      expect(await catalog.storeParts(upload.id, { parts: [part], piece: piece(3, 7) }, move(15, 37))).toBe(
        true,
      )
      expect(await other.findUploadParts(upload.id)).toEqual({ multipart: 'first', parts: [part] })
      expect(Buffer.concat(await other.findUploadPieces(upload.id))).toEqual(Buffer.from(piece(3, 7)))
      expect(await catalog.findUpload(upload.id)).toMatchObject({ offset: 37, expiresAt: 1_000 })

      const item = newItem({ id: upload.itemId, size: 100 })
      expect(await catalog.finishUpload(upload.id, { ...item, bytes: null }, 1_000)).toBe(true)
      expect(await catalog.findUploadParts(upload.id)).toBeNull()
      expect(await catalog.findUploadPieces(upload.id)).toEqual([])
      expect(await catalog.beginParts(upload.id, 'third')).toBeNull()
      expect(await catalog.storeParts(upload.id, { parts: [], piece: piece(1, 1) }, move(37, 38))).toBe(false)
      expect(await catalog.bucket(bucketId)).toMatchObject({ items: 1, reservedBytes: 0 })
    })

    test('R5 a finished upload stays if only an unfinished one may be removed', async () => {
      const { catalog, other, upload, bucketId } = await openWithUpload(fresh, 10)
      const failed = newUpload(bucketId, { length: 10 })
      await catalog.createUpload(failed)
      const added = inBlobStore([newItem({ size: 10 })])[0]
      if (added) await catalog.finishUpload(upload.id, added, 1_000)
      expect(await other.removeUpload(upload.id, true)).toBe(false)
      expect(await other.findUpload(upload.id)).toMatchObject({ finished: true })
      expect(await other.removeUpload(failed.id, true)).toBe(true)
      expect(await other.removeUpload(failed.id, true)).toBe(false)
      expect(await other.bucket(bucketId)).toMatchObject({ items: 1, reservedItems: 0, reservedBytes: 0 })
    })

    test('R6 long pieces are separate, in their order, and a removed upload has none', async () => {
      const { catalog, upload } = await openWithUpload(fresh, 300_000)
      const pieces = [40_000, 40_000, 10_000, 100_000].map((length, index) =>
        new Uint8Array(length).fill(index),
      )
      let from = 0
      for (const piece of pieces) {
        const to = from + piece.byteLength
        await catalog.storeParts(upload.id, { parts: [], piece }, { from, to, expiresAt: 1_000 })
        from = to
      }
      expect(Buffer.concat(await catalog.findUploadPieces(upload.id)).equals(Buffer.concat(pieces))).toBe(
        true,
      )
      expect(await catalog.removeUpload(upload.id)).toBe(true)
      expect(await catalog.findUploadPieces(upload.id)).toEqual([])
    })
  })
}

async function openWithUpload(fresh: Fresh, length: number) {
  const { catalog, other } = await openTwo(fresh)
  const bucketId = await newBucket(catalog, 'b')
  const upload = newUpload(bucketId, { length })
  await catalog.createUpload(upload)
  return { catalog, other, bucketId, upload }
}
