import { describe, expect, test } from 'vitest'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { inBlobStore, newBucket, newItem, newItems, newUpload } from './samples.ts'

/** The behaviour of every catalog engine with quotas. */
export function describeQuotas(engine: string, fresh: Fresh): void {
  describe(`${engine}: quotas`, () => {
    test('Q3 a bucket has its items, bytes, reservations and limits', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await newBucket(catalog, 'a')
      const unlimited = {
        ...{ reservedItems: 0, reservedBytes: 0, maxItems: null, maxBytes: null, trashDays: 0 },
        ...{
          isPrivate: false,
          signedPages: false,
          publicKeys: false,
          publicList: false,
          urlUploads: true,
          variants: null,
          publicVariants: null,
          crop: null,
          removesMetadata: false,
          itemDays: null,
        },
        ...{ maxFileSize: null, types: null },
        trash: { items: 0, bytes: 0 },
      }
      expect(await catalog.listBuckets()).toEqual([
        { name: 'a', items: 0, bytes: 0, ...unlimited },
        { name: 'b', items: 0, bytes: 0, ...unlimited },
      ])
      await catalog.addItems(bucketId, inBlobStore([newItem({ size: 5 }), newItem({ size: 7 })]))
      await catalog.createUpload(newUpload(bucketId, { length: 100 }))
      expect(await catalog.setBucket('b', { maxItems: 10 })).toBe(true)
      expect(await catalog.setBucket('b', { maxBytes: 2 ** 45 })).toBe(true)
      expect(await catalog.setBucket('nowhere', { maxItems: 1 })).toBe(false)
      const full = {
        name: 'b',
        items: 2,
        bytes: 12,
        reservedItems: 1,
        reservedBytes: 100,
        maxItems: 10,
        maxBytes: 2 ** 45,
        trashDays: 0,
        isPrivate: false,
        signedPages: false,
        publicKeys: false,
        publicList: false,
        urlUploads: true,
        variants: null,
        publicVariants: null,
        crop: null,
        removesMetadata: false,
        itemDays: null,
        ...{ maxFileSize: null, types: null },
      }
      expect(await catalog.bucket(bucketId)).toEqual(full)
      await catalog.setBucket('b', { maxItems: null })
      expect(await catalog.bucket(bucketId)).toEqual({ ...full, maxItems: null })
      expect(await catalog.bucket(99 as never)).toBeNull()
    })

    test('Q1 items are added up to the limit and no further, all items of a request or none', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { maxItems: 5 })
      await catalog.addItems(bucketId, inBlobStore(newItems(3)))
      await expect(catalog.addItems(bucketId, inBlobStore(newItems(3)))).rejects.toMatchObject({
        name: 'Fault',
        code: 'quota-exceeded',
        parameters: [{ parameter: 'max_items', detail: 'The bucket may hold 5 items.' }],
      })
      await catalog.addItems(bucketId, inBlobStore(newItems(2)))
      await expect(catalog.addItems(bucketId, inBlobStore(newItems(1)))).rejects.toMatchObject({
        code: 'quota-exceeded',
      })
      expect((await catalog.page(bucketId, 1)).total).toBe(5)
    })

    test('Q1 bytes are limited too, and a deleted item frees its share', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { maxBytes: 100 })
      const item = newItem({ size: 60 })
      await catalog.addItems(bucketId, inBlobStore([item]))
      await expect(catalog.addItems(bucketId, inBlobStore([newItem({ size: 41 })]))).rejects.toMatchObject({
        parameters: [{ parameter: 'max_bytes', detail: 'The bucket may hold 100 bytes.' }],
      })
      await catalog.addItems(bucketId, inBlobStore([newItem({ size: 40 }), newItem({ size: 0 })]))
      await catalog.removeItems(bucketId, [item.id])
      await catalog.addItems(bucketId, inBlobStore([newItem({ size: 60 })]))
      expect(await catalog.bucket(bucketId)).toMatchObject({ items: 3, bytes: 100 })
    })

    test('Q1 concurrent changes of two processes do not exceed the limit', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { maxItems: 10, maxBytes: 9_500 })
      const results = await Promise.allSettled(
        Array.from({ length: 40 }, (_, i) =>
          (i % 2 ? catalog : other).addItems(bucketId, inBlobStore([newItem()])),
        ),
      )
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(9)
      expect(await other.bucket(bucketId)).toMatchObject({ items: 9, bytes: 9_000 })
    })

    test('Q2 the reservation of an upload is not available to others, and the upload can always finish', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { maxBytes: 100, maxItems: 2 })
      const upload = newUpload(bucketId, { length: 70 })
      await catalog.createUpload(upload)
      await expect(catalog.createUpload(newUpload(bucketId, { length: 31 }))).rejects.toMatchObject({
        code: 'quota-exceeded',
      })
      await expect(catalog.addItems(bucketId, inBlobStore([newItem({ size: 31 })]))).rejects.toMatchObject({
        code: 'quota-exceeded',
      })
      await catalog.addItems(bucketId, inBlobStore([newItem({ size: 30 })]))
      await expect(catalog.addItems(bucketId, inBlobStore([newItem({ size: 0 })]))).rejects.toMatchObject({
        code: 'quota-exceeded',
      })
      expect(
        await catalog.finishUpload(
          upload.id,
          { ...newItem({ id: upload.itemId, size: 70 }), bytes: null },
          1,
        ),
      ).toBe(true)
      expect(await catalog.bucket(bucketId)).toMatchObject({
        items: 2,
        bytes: 100,
        reservedItems: 0,
        reservedBytes: 0,
      })
    })

    test('Q2 if a limit is lowered below the reservations, uploads finish as long as they fit', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const [first, second] = [newUpload(bucketId, { length: 70 }), newUpload(bucketId, { length: 70 })]
      await catalog.createUpload(first)
      await catalog.createUpload(second)
      await catalog.setBucket('b', { maxBytes: 100 })
      const finish = ({ id, itemId }: typeof first) =>
        catalog.finishUpload(id, { ...newItem({ id: itemId, size: 70 }), bytes: null }, 1)
      expect(await finish(first)).toBe(true)
      await expect(finish(second)).rejects.toMatchObject({ code: 'quota-exceeded' })
      expect(await catalog.bucket(bucketId)).toMatchObject({ items: 1, bytes: 70, reservedBytes: 70 })
      await catalog.removeUpload(second.id)
      expect(await catalog.bucket(bucketId)).toMatchObject({ reservedItems: 0, reservedBytes: 0 })
    })

    test('Q2 an upload of unknown length reserves its received bytes, then its declared length', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { maxBytes: 100 })
      const { id } = newUpload(bucketId)
      await catalog.createUpload(newUpload(bucketId, { id, length: null }))
      const reserved = async () => (await catalog.bucket(bucketId))?.reservedBytes
      expect(await reserved()).toBe(0)
      expect(await catalog.moveUpload(id, 0, 40, 1)).toBe(true)
      expect(await reserved()).toBe(40)
      await expect(catalog.moveUpload(id, 40, 101, 1)).rejects.toMatchObject({ code: 'quota-exceeded' })
      await expect(catalog.declareLength(id, 101)).rejects.toMatchObject({ code: 'quota-exceeded' })
      expect(await catalog.declareLength(id, 90)).toBe(true)
      expect(await catalog.declareLength(id, 80)).toBe(false)
      expect(await reserved()).toBe(90)
      await catalog.moveUpload(id, 40, 60, 1)
      expect(await reserved()).toBe(90)
      await catalog.moveUpload(id, 60, 10, 1)
      expect(await reserved()).toBe(90)
      expect(await catalog.removeUpload(id)).toBe(true)
      expect(await reserved()).toBe(0)
    })
  })
}
