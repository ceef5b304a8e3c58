import { describe, expect, test } from 'vitest'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { hashOf, inBlobStore, newBucket, newItem, newItems, newToken, newUpload } from './samples.ts'

/** The behaviour of every catalog engine when buckets are created and deleted. */
export function describeBuckets(engine: string, fresh: Fresh): void {
  describe(`${engine}: buckets`, () => {
    test('Q4 a bucket is created once, with its limits', async () => {
      const catalog = await openOne(fresh)
      expect(await catalog.createBucket('b', { maxItems: 1, maxBytes: null }, 1)).toBe(true)
      expect(await catalog.createBucket('b', { maxItems: 9, maxBytes: 9 }, 2)).toBe(false)
      expect(await catalog.listBuckets()).toMatchObject([
        { name: 'b', items: 0, maxItems: 1, maxBytes: null },
      ])
      const created = await catalog.findBucketNamed('b')
      expect(created).toMatchObject({ name: 'b', maxItems: 1 })
      await catalog.addToken(newToken('t', { bucket: 'b' }))
      expect(await catalog.findGrant(hashOf('t'))).toMatchObject({ bucketId: created?.id })
      expect(await catalog.findBucketNamed('nobody')).toBeNull()
    })

    test('H1 every process reads whether a bucket is private, with its items and its tokens', async () => {
      const { catalog, other } = await openTwo(fresh)
      const [id, open] = [await newBucket(catalog, 'b'), await newBucket(catalog, 'open')]
      const [item, shown] = [newItem(), newItem()]
      await catalog.addItems(id, inBlobStore([item]))
      await catalog.addItems(open, inBlobStore([shown]))
      const state = async () => ({
        settings: [(await other.bucket(id))?.isPrivate, (await other.findBucketNamed('b'))?.signedPages],
        item: [(await other.item(item.id))?.isPrivate, (await other.item(shown.id))?.isPrivate],
        served: await other.servability([item.id, shown.id]),
        signs: [
          (await other.findGrant(hashOf('b')))?.signsPages,
          (await other.findGrant(hashOf('open')))?.signsPages,
        ],
      })
      const plain = {
        settings: [false, false],
        item: [false, false],
        served: ['servable', 'servable'],
        signs: [false, false],
      }
      expect(await state()).toEqual(plain)
      await catalog.setBucket('b', { signedPages: true })
      expect(await state()).toEqual({ ...plain, settings: [false, true] })
      await catalog.setBucket('b', { isPrivate: true })
      const hidden = {
        settings: [true, true],
        item: [true, false],
        served: ['private', 'servable'],
        signs: [true, false],
      }
      expect(await state()).toEqual(hidden)
      await catalog.editItem(id, item.id, { filename: 'new.jpg' }, null)
      expect(await state()).toEqual(hidden)
      await catalog.setBucket('b', { isPrivate: false })
      expect(await state()).toEqual({ ...plain, settings: [false, true], served: ['renamed', 'servable'] })
      expect(await catalog.createBucket('made', { isPrivate: true }, 1)).toBe(true)
      expect(await catalog.findBucketNamed('made')).toMatchObject({ isPrivate: true, signedPages: false })
    })

    test('of processes that create the same bucket with a token, one succeeds', async () => {
      const { catalog, other } = await openTwo(fresh)
      const created = await Promise.all(
        [catalog, other, catalog, other].map((one, index) =>
          one.createBucketWithToken(newToken(`t${index}`, { bucket: 'b' })),
        ),
      )
      expect(created.filter(Boolean)).toHaveLength(1)
      expect((await catalog.listTokens()).map(({ id, bucket }) => [id, bucket])).toEqual([
        [`t${created.indexOf(true)}`, 'b'],
      ])
    })

    test('Q5 a bucket is deleted in steps: tokens fail first, each item leaves a tombstone, the row is deleted last', async () => {
      const { catalog, other } = await openTwo(fresh)
      const [id, kept] = [await newBucket(catalog, 'b'), await newBucket(catalog, 'kept')]
      const items = newItems(5)
      await catalog.addItems(id, inBlobStore(items))
      await catalog.addItems(kept, inBlobStore(newItems(2)))
      const upload = newUpload(id)
      await catalog.createUpload(upload)
      const ids = items.map((item) => item.id)
      expect(await other.deleteBucketChunk(id, 3, 7)).toEqual({
        items: 3,
        tombstones: ids.slice(0, 3),
        isDeleted: false,
      })
      expect(await catalog.findGrant(hashOf('b'))).toMatchObject({ revokedAt: 7, total: 2 })
      expect(await catalog.page(id, 1)).toMatchObject({ total: 2 })
      expect(await other.deleteBucketChunk(id, 3, 8)).toEqual({
        items: 2,
        tombstones: ids.slice(3),
        isDeleted: false,
      })
      expect(await catalog.uploadsOf(id)).toMatchObject([{ id: upload.id }])
      await other.removeUpload(upload.id)
      expect(await other.deleteBucketChunk(id, 3, 9)).toEqual({ items: 0, tombstones: [], isDeleted: true })
      expect((await catalog.listTombstones()).toSorted()).toEqual(ids.toSorted())
      expect(await catalog.findGrant(hashOf('b'))).toBeNull()
      expect((await catalog.listBuckets()).map(({ name }) => name)).toEqual(['kept'])
      expect(await catalog.page(kept, 1)).toMatchObject({ total: 2 })
    })

    test('Q5 changes to a deleted bucket are refused, and its id is never reused', async () => {
      const catalog = await openOne(fresh)
      const id = await newBucket(catalog, 'b')
      expect(await catalog.deleteBucketChunk(id, 1, 1)).toMatchObject({ isDeleted: true })
      const late = { code: 'token-revoked' }
      await expect(catalog.addItems(id, inBlobStore([newItem()]))).rejects.toMatchObject(late)
      await expect(catalog.createUpload(newUpload(id))).rejects.toMatchObject(late)
      await expect(catalog.page(id, 1)).rejects.toMatchObject(late)
      const again = await newBucket(catalog, 'b')
      await catalog.deleteBucketChunk(again, 1, 1)
      expect(new Set([id, again, await newBucket(catalog, 'b')]).size).toBe(3)
    })
  })
}
