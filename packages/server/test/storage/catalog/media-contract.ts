import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { newItemId } from '../../../src/core/ids.ts'
import type { BucketId, ContentId, NewItem, TokenId } from '../../../src/storage/catalog/records.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import {
  allPages,
  contentOf,
  copyOf,
  hashOf,
  inBlobStore,
  newBucket,
  newItem,
  newItems,
  newToken,
  newUpload,
  withBytes,
} from './samples.ts'

/** What no render has found yet. */
const unseen = { thumbhash: null, duration: null }

/** The behaviour of every catalog engine with items. */
export function describeMedia(engine: string, fresh: Fresh): void {
  describe(`${engine}: media`, () => {
    test('an item is stored with all fields', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const whole = newItem({ size: 2 ** 45, filename: 'Übersicht 🗺.jpg' })
      const bare = newItem({
        filename: null,
        extension: null,
        width: null,
        height: null,
        size: 0,
      })
      await catalog.addItems(bucketId, inBlobStore([whole, bare]))
      const texts = { altText: null, caption: null }
      const asStored = (item: NewItem) => ({
        ...item,
        ...unseen,
        ...texts,
        bucketId,
        isDamaged: false,
        contentId: null,
        isPrivate: false,
        pictures: null,
      })
      expect(await catalog.item(whole.id)).toEqual(asStored(whole))
      expect(await catalog.item(bare.id)).toEqual(asStored(bare))
      expect(await catalog.item(newItemId())).toBeNull()
    })

    test('V13 the preview of an item is recorded once, keeps known values, and changes the revision', async () => {
      const catalog = await openOne(fresh)
      const [bucketId, other] = [await newBucket(catalog, 'a'), await newBucket(catalog, 'b')]
      const [picture, video] = [newItem(), newItem({ width: null, height: null })]
      await catalog.addItems(bucketId, inBlobStore([picture, video]))
      const revision = async () => (await catalog.page(bucketId, 1)).revision
      const preview = { thumbhash: new Uint8Array([1, 0, 255]), duration: 61_500, width: 30, height: 20 }
      let before = await revision()
      for (const { id, width, height } of [picture, video]) {
        await catalog.setPreview(bucketId, id, preview)
        const known = { ...preview, width: width ?? 30, height: height ?? 20 }
        expect(await catalog.item(id)).toMatchObject(known)
        const after = await revision()
        expect(after).toBeGreaterThan(before)
        before = after
      }
      const later = { ...preview, thumbhash: new Uint8Array([9]) }
      await catalog.setPreview(bucketId, picture.id, later)
      await catalog.setPreview(other, video.id, later)
      await catalog.setPreview(bucketId, newItemId(), later)
      expect(await catalog.item(picture.id)).toMatchObject({ thumbhash: preview.thumbhash })
      const selection = { bucketId, order: 'oldest', kind: null, from: null, to: null, name: null } as const
      const { rows } = await catalog.items(selection, null, 10)
      expect(rows.map(({ item }) => item)).toMatchObject([{ ...preview, width: 640, height: 480 }, preview])
      expect(await revision()).toBe(before)
      const corrected = { ...later, duration: null, width: 20, height: 30 }
      await catalog.setPreview(bucketId, picture.id, { ...corrected, isCorrection: true })
      expect(await catalog.item(picture.id)).toMatchObject({ ...corrected, duration: 61_500 })
      expect(await revision()).toBeGreaterThan(before)
    })

    test('M10 pictures and videos that were not read for their time are listed until they were, also in the trash, and a time is one change', async () => {
      const catalog = await openOne(fresh)
      const [bucketId, other] = [await newBucket(catalog, 'a'), await newBucket(catalog, 'b')]
      await catalog.setBucket('a', { trashDays: 3 })
      await catalog.setBucket('b', { removesMetadata: true })
      const [first, none, thrown] = [newItem(), newItem({ contentType: 'video/mp4' }), newItem()]
      const removed = newItem()
      const others = [
        newItem({ takenRead: true }),
        newItem({ takenAt: 5, takenOffset: null }),
        newItem({ contentType: 'text/plain' }),
      ]
      await catalog.addItems(bucketId, inBlobStore([first, ...others, none, thrown]))
      await catalog.addItems(other, inBlobStore([removed]))
      await catalog.removeItems(bucketId, [thrown.id])
      const unread = async () => (await catalog.listUnreadTaken(null, 10)).map(({ id }) => id)
      const [start] = await catalog.listUnreadTaken(null, 1)
      expect(await unread()).toEqual([thrown.id, first.id, none.id, removed.id])
      expect((await catalog.listUnreadTaken(start ?? null, 1)).map(({ id }) => id)).toEqual([first.id])

      const revision = async () => (await catalog.page(bucketId, 1)).revision
      const before = await revision()
      const taken = { time: 1_532_023_331_500, offset: -210 }
      const trash = start?.bucketId ?? bucketId
      expect(await catalog.setTaken(bucketId, none.id, null)).toBe(false)
      expect(await catalog.setTaken(trash, thrown.id, taken)).toBe(true)
      expect(await catalog.setTaken(other, removed.id, taken)).toBe(false)
      expect(await revision()).toBe(before)
      expect(await catalog.setTaken(bucketId, first.id, taken)).toBe(true)
      expect(await catalog.setTaken(bucketId, first.id, { ...taken, time: 1 })).toBe(false)
      expect(await unread()).toEqual([])
      const stored = { takenAt: taken.time, takenOffset: taken.offset }
      for (const { id } of [first, thrown]) expect(await catalog.item(id)).toMatchObject(stored)
      for (const { id } of [none, removed]) expect(await catalog.item(id)).not.toHaveProperty('takenAt')
      expect(await revision()).toBeGreaterThan(before)
      const changes = (await catalog.readChanges(bucketId, 0, 100))?.changes ?? []
      expect(changes.filter(({ kind }) => kind === 'edited').map(({ itemId }) => itemId)).toEqual([first.id])
    })

    test('M2 an item can be served from its addition to its removal, in any bucket', async () => {
      const catalog = await openOne(fresh)
      const [one, other] = [await newBucket(catalog, 'a'), await newBucket(catalog, 'b')]
      const [first, second, unknown] = [newItem(), newItem(), newItem()]
      const ids = [second.id, unknown.id, first.id, first.id]
      await catalog.addItems(one, inBlobStore([first]))
      expect(await catalog.servability(ids)).toEqual(['not', 'not', 'servable', 'servable'])
      await catalog.addItems(other, inBlobStore([second]))
      await catalog.removeItems(one, [first.id])
      expect(await catalog.servability(ids)).toEqual(['servable', 'not', 'not', 'not'])
      expect(await catalog.servability([])).toEqual([])
    })

    test('L10 items are listed in the order of their addition, ten on a page', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const items = newItems(25)
      await catalog.addItems(bucketId, inBlobStore(items.slice(0, 3)))
      await catalog.addItems(bucketId, inBlobStore(items.slice(3)))
      const pages = await Promise.all([1, 2, 3].map((page) => catalog.page(bucketId, page)))
      expect(pages.map(({ rows }) => rows.length)).toEqual([10, 10, 5])
      const listed = items.map(({ id, extension }) => ({ id, extension }))
      expect(pages.flatMap(({ rows }) => rows)).toEqual(listed)
      expect(new Set(pages.map(({ total }) => total))).toEqual(new Set([25]))
    })

    test('L12 pages past the last one are empty and have the total, up to the largest page number', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      expect(await catalog.page(bucketId, 1)).toEqual({ revision: 0, expired: 0, total: 0, rows: [] })
      await catalog.addItems(bucketId, inBlobStore(newItems(10)))
      for (const page of [2, 3, 2 ** 31, 2 ** 32, 2 ** 40, Number.MAX_SAFE_INTEGER]) {
        expect(await catalog.page(bucketId, page)).toMatchObject({ total: 10, rows: [] })
      }
    })

    test('U2 all items of a request are added, or none', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const [first, ...more] = newItems(3)
      if (!first) throw new Error('no item')
      await catalog.addItems(bucketId, inBlobStore([first]))
      const before = await catalog.page(bucketId, 1)
      await expect(catalog.addItems(bucketId, inBlobStore([...more, first]))).rejects.toThrow()
      expect(await catalog.page(bucketId, 1)).toEqual(before)
      await catalog.addItems(bucketId, inBlobStore(more))
      expect(await allPages(catalog, bucketId)).toEqual([first, ...more].map((item) => item.id))
    })

    test('items for a bucket that does not exist are refused', async () => {
      const catalog = await openOne(fresh)
      await expect(catalog.addItems(99 as BucketId, inBlobStore(newItems(1)))).rejects.toThrow()
    })

    test('M2 a deleted item leaves a tombstone until its bytes are deleted', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const [kept, gone] = newItems(2)
      if (!kept || !gone) throw new Error('no item')
      await catalog.addItems(bucketId, inBlobStore([kept, gone]))
      expect((await catalog.removeItems(bucketId, [gone.id])).ids).toEqual([gone.id])
      expect((await catalog.removeItems(bucketId, [gone.id])).ids).toEqual([])
      expect(await catalog.item(gone.id)).toBeNull()
      expect(await allPages(catalog, bucketId)).toEqual([kept.id])
      expect(await catalog.listTombstones()).toEqual([gone.id])
      await catalog.clearTombstones([gone.id])
      expect(await catalog.listTombstones()).toEqual([])
    })

    test('S8 the transaction that adds an item of the blob store removes its intent', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const [stored, failed] = newItems(2)
      if (!stored || !failed) throw new Error('no item')
      await catalog.addIntents([stored.id, failed.id], 1_000)
      await catalog.addIntents([failed.id], 1_000)
      expect((await catalog.listIntents()).toSorted()).toEqual([stored.id, failed.id].toSorted())
      await expect(catalog.addItems(99 as BucketId, inBlobStore([stored]))).rejects.toThrow()
      expect(await catalog.listIntents()).toHaveLength(2)
      await catalog.addItems(bucketId, inBlobStore([stored]))
      expect(await catalog.listIntents()).toEqual([failed.id])
      await catalog.clearIntents([failed.id, stored.id])
      expect(await catalog.listIntents()).toEqual([])
    })

    test('S8 an intent is retired after its deadline, unless an item, a tombstone or an unfinished upload has its id', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const [stored, removed, uploading, orphan, later] = newItems(5)
      if (!stored || !removed || !uploading || !orphan || !later) throw new Error('no item')
      await catalog.addItems(bucketId, inBlobStore([stored, removed]))
      await catalog.removeItems(bucketId, [removed.id])
      await catalog.createUpload({ ...newUpload(bucketId), itemId: uploading.id })
      const expired = [stored, removed, uploading, orphan].map(({ id }) => id)
      await catalog.addIntents(expired, 0)
      await catalog.addIntents([later.id], 0)
      await catalog.addIntents([later.id], 60_000)
      await catalog.addIntents([later.id], 0)
      expect((await catalog.expiredIntents()).toSorted()).toEqual(expired.toSorted())
      expect(await catalog.retireIntents([...expired, later.id])).toEqual([orphan.id])
      await expect(catalog.addItems(bucketId, inBlobStore([orphan]))).rejects.toThrow()
      await catalog.addItems(bucketId, inBlobStore([later]))
      expect(await allPages(catalog, bucketId)).toEqual([stored.id, later.id])
    })

    test('an item is stored with its bytes, which are read unchanged, also none and the largest number', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const contents = [0, 1, 9_000, 1024 * 1024].map((size) => randomBytes(size))
      const items = contents.map((bytes) => ({ ...newItem({ size: bytes.length }), bytes: copyOf(bytes) }))
      await catalog.addItems(bucketId, [...items, ...inBlobStore([newItem()])])
      for (const [index, item] of items.entries()) {
        const found = await catalog.item(item.id)
        const bytes = found?.contentId ? await catalog.content(found.contentId) : null
        expect(bytes && contents[index]?.equals(bytes)).toBe(true)
      }
      expect(await catalog.content(999_999 as ContentId)).toBeNull()
    })

    test('U2 bytes are stored with their rows, or neither', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const add = (item: NewItem) => catalog.addItems(bucketId, [withBytes(item), withBytes(newItem())])
      const item = newItem()
      await add(item)
      const stored = await catalog.item(item.id)
      await expect(add(item)).rejects.toThrow()
      await catalog.addItems(bucketId, [withBytes(newItem())])
      expect(await allPages(catalog, bucketId)).toHaveLength(3)
      expect(await catalog.item(item.id)).toEqual(stored)
      expect(stored?.contentId && (await catalog.content(stored.contentId))).toEqual(contentOf(item))
    })

    test('M2 a deleted item is deleted with its bytes, and their id is not reused', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const text = newItem({ contentType: 'text/plain' })
      const picture = newItem({ contentType: 'image/png' })
      await catalog.addItems(bucketId, [withBytes(text), withBytes(picture)])
      const ids: (ContentId | null | undefined)[] = []
      for (const { id } of [text, picture]) ids.push((await catalog.item(id))?.contentId)
      expect(await catalog.removeItems(bucketId, [text.id])).toEqual({ ids: [text.id], tombstones: [] })
      // Variants of a picture may be in the blob store.
      expect(await catalog.removeItems(bucketId, [picture.id])).toEqual({
        ids: [picture.id],
        tombstones: [picture.id],
      })
      expect(await catalog.listTombstones()).toEqual([picture.id])
      for (const id of ids) expect(id && (await catalog.content(id))).toBeNull()
      const next = newItem()
      await catalog.addItems(bucketId, [withBytes(next)])
      expect(ids).not.toContain((await catalog.item(next.id))?.contentId)
    })

    test('M4 many items are deleted in one step, in any order, and others are not', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const other = await newBucket(catalog, 'other')
      const items = [...newItems(150), newItem({ contentType: 'text/plain' })]
      const theirs = newItem()
      await catalog.addItems(bucketId, items.map(withBytes))
      await catalog.addItems(other, inBlobStore([theirs]))
      const ids = items.filter((_, index) => index % 3 === 0).map(({ id }) => id)
      const before = await catalog.findGrant(hashOf('b'))
      const asked = [newItem().id, ...ids.toReversed(), theirs.id]
      const removed = await catalog.removeItems(bucketId, asked)
      expect(removed.ids).toEqual(ids.toReversed())
      // All are pictures except the last one.
      expect(removed.tombstones.toSorted()).toEqual(ids.slice(0, -1).toSorted())
      const left = items.filter(({ id }) => !ids.includes(id))
      expect(await allPages(catalog, bucketId)).toEqual(left.map(({ id }) => id))
      expect(await allPages(catalog, other)).toEqual([theirs.id])
      const after = await catalog.findGrant(hashOf('b'))
      expect([after?.total, before?.total]).toEqual([left.length, items.length])
      expect(await catalog.removeItems(bucketId, asked)).toEqual({ ids: [], tombstones: [] })
      expect((await catalog.findGrant(hashOf('b')))?.revision).toBe(after?.revision)
    })

    test('A6 an item of another bucket can be neither read nor deleted', async () => {
      const catalog = await openOne(fresh)
      const mine = await newBucket(catalog, 'mine')
      const theirs = await newBucket(catalog, 'theirs')
      const item = newItem()
      await catalog.addItems(theirs, inBlobStore([item]))
      expect(await allPages(catalog, mine)).toEqual([])
      expect(await catalog.removeItems(mine, [item.id])).toEqual({ ids: [], tombstones: [] })
      expect(await allPages(catalog, theirs)).toEqual([item.id])
      expect(await catalog.listTombstones()).toEqual([])
    })

    test('the revision increases only with changes of the items', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const revisions: number[] = []
      const note = async () => {
        const grant = await catalog.findGrant(hashOf('b'))
        const page = await catalog.page(bucketId, 1)
        expect(grant).toMatchObject({ revision: page.revision, total: page.total })
        revisions.push(page.revision)
      }
      await note()
      const item = newItem()
      await catalog.addItems(bucketId, inBlobStore([item, newItem()]))
      await note()
      await catalog.removeItems(bucketId, [item.id])
      await note()
      const grown = [...revisions]
      expect(new Set(grown).size).toBe(3)
      expect(grown).toEqual(grown.toSorted((a, b) => a - b))

      await catalog.addItems(bucketId, inBlobStore([]))
      await catalog.removeItems(bucketId, [item.id])
      await catalog.clearTombstones([item.id])
      await catalog.touchToken('b' as TokenId, 1)
      await catalog.addToken(newToken('second', { bucket: 'b' }))
      await note()
      expect(revisions.at(-1)).toBe(grown.at(-1))
    })

    test('a read sees what another process has committed', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      for (const item of newItems(15)) {
        await other.addItems(bucketId, inBlobStore([item]))
        const { total } = await catalog.page(bucketId, 1)
        expect((await catalog.findGrant(hashOf('b')))?.total).toBe(total)
        expect(await allPages(catalog, bucketId)).toHaveLength(total)
        expect((await catalog.item(item.id))?.id).toBe(item.id)
      }
    })
  })
}
