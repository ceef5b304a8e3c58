import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import type { ItemChange } from '../../../src/storage/catalog/feed/feed.ts'
import type { BucketId, TokenId } from '../../../src/storage/catalog/records.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import {
  hashOf,
  inBlobStore,
  newBucket,
  newItem,
  newItems,
  newToken,
  newUpload,
  withBytes,
} from './samples.ts'

/** All changes after a number. */
async function writesOf(
  catalog: Catalog,
  bucketId: BucketId,
  after: number | 'start' = 'start',
  limit = 100,
) {
  const found: ItemChange[] = []
  for (let from: number | 'start' = after; ; ) {
    const rows = await catalog.readChanges(bucketId, from, limit)
    if (rows === null) throw new Error('the feed does not reach back')
    found.push(...rows.changes)
    if (!rows.hasMore) return found
    from = rows.next
  }
}

const brief = ({ kind, itemId, item }: ItemChange) => [kind, itemId, item?.id ?? null]

/** The feed, on every catalog engine. */
export function describeFeed(engine: string, fresh: Fresh): void {
  describe(`${engine}: feed`, () => {
    test('FE1, FE2 each change of an item is in the feed once, with the item as it is now', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const elsewhere = await newBucket(catalog, 'c')
      await catalog.addItems(elsewhere, inBlobStore(newItems(2)))
      const [one, two] = [newItem(), newItem()]
      await catalog.addItems(bucketId, [withBytes(one), ...inBlobStore([two])])
      const upload = newUpload(bucketId)
      await catalog.createUpload(upload)
      await catalog.finishUpload(upload.id, { ...newItem({ id: upload.itemId }), bytes: null }, 5)
      await catalog.finishUpload(upload.id, { ...newItem({ id: upload.itemId }), bytes: null }, 5)
      const request = { tokenId: 'b' as TokenId, key: 'k', fingerprint: hashOf('k'), now: 0, expiresAt: 9e12 }
      const keyed = newItem()
      await catalog.addItemsOnce(bucketId, inBlobStore([keyed]), request)
      await catalog.addItemsOnce(bucketId, inBlobStore([newItem()]), request)
      await catalog.editItem(bucketId, two.id, { caption: 'x' }, null)
      await catalog.editItem(bucketId, two.id, { caption: 'x' }, null)
      const preview = { thumbhash: hashOf('t'), duration: null, width: 1, height: 2 }
      await catalog.setPreview(bucketId, two.id, preview)
      await catalog.setPreview(bucketId, two.id, preview)
      await catalog.setBucket('b', { trashDays: 3 })
      await catalog.removeItems(bucketId, [one.id, newItem().id, keyed.id])
      await catalog.restoreItems(bucketId, [keyed.id])
      await catalog.purgeItems(bucketId, [one.id])
      await catalog.setBucket('b', { trashDays: 0 })
      await catalog.removeItems(bucketId, [keyed.id])
      const changes = await writesOf(catalog, bucketId)
      expect(changes.map(brief)).toEqual([
        ['added', one.id, null],
        ['added', two.id, two.id],
        ['added', upload.itemId, upload.itemId],
        ['added', keyed.id, null],
        ['edited', two.id, two.id],
        ['previewed', two.id, two.id],
        ['trashed', one.id, null],
        ['trashed', keyed.id, null],
        ['restored', keyed.id, null],
        ['removed', one.id, null],
        ['removed', keyed.id, null],
      ])
      expect(changes[1]?.item).toMatchObject({
        caption: 'x',
        filename: 'harbour.jpg',
        thumbhash: hashOf('t'),
      })
      expect(Math.abs((changes[0]?.time ?? 0) - Date.now())).toBeLessThan(60_000)
      const numbers = changes.map(({ number }) => number)
      expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
      expect(await writesOf(catalog, bucketId, 'start', 2)).toEqual(changes)
      expect(await writesOf(catalog, bucketId, numbers[4])).toEqual(changes.slice(5))
    })

    test('FE1 expired items have a change when they are removed, and none is listed after its expiry', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { trashDays: 3 })
      const now = Date.now()
      const [listed, trashed] = [newItem({ expiresAt: now + 9_000 }), newItem({ expiresAt: now + 8_000 })]
      await catalog.addItems(bucketId, [withBytes(listed), withBytes(trashed)])
      await catalog.removeItems(bucketId, [trashed.id])
      expect((await writesOf(catalog, bucketId))[0]?.item?.id).toBe(listed.id)
      await catalog.expireItems(bucketId, now + 10_000)
      const expired = (await writesOf(catalog, bucketId)).slice(3).map(brief)
      expect(expired).toEqual([
        ['expired', listed.id, null],
        ['expired', trashed.id, null],
      ])
    })

    test('FE1 changes that fail are not in the feed, and uploads that share a transaction are', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { maxItems: 30 })
      const items = newItems(40)
      const results = await Promise.allSettled(
        items.map((item) => catalog.addItems(bucketId, [withBytes(item)])),
      )
      const stored = items.filter((_, index) => results[index]?.status === 'fulfilled').map(({ id }) => id)
      expect(stored).toHaveLength(30)
      const added = (await writesOf(catalog, bucketId)).map(({ itemId }) => itemId)
      expect(added.toSorted()).toEqual(stored.toSorted())
    })

    test('FE3, FE5 a reader continues after a number; removed and unknown numbers are refused', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const end = async () => (await catalog.readChanges(bucketId, 'now', 0))?.next ?? -1
      expect(await catalog.readChanges(bucketId, 0, 10)).toEqual({
        changes: [],
        next: 0,
        seen: 0,
        hasMore: false,
      })
      expect(await end()).toBe(0)
      await catalog.addItems(bucketId, inBlobStore(newItems(3)))
      const middle = await end()
      const later = newItems(4)
      for (const item of later) await catalog.addItems(bucketId, inBlobStore([item]))
      const rows = await catalog.readChanges(bucketId, middle, 3)
      expect(rows).toMatchObject({ hasMore: true })
      expect(rows?.changes.map(({ itemId }) => itemId)).toEqual(later.slice(0, 3).map(({ id }) => id))
      expect(rows?.next).toBe(rows?.changes[2]?.number)
      const last = await end()
      expect((await catalog.readChanges(bucketId, rows?.next ?? 0, 3))?.next).toBe(last)

      expect(await catalog.removeChanges(Date.now() - 60_000, 5)).toBe(0)
      expect(await catalog.removeChanges(Date.now() + 1_000, 5)).toBe(5)
      expect(await catalog.readChanges(bucketId, middle, 3)).toBeNull()
      const kept = (await writesOf(catalog, bucketId)).map(({ itemId }) => itemId)
      expect(kept).toEqual(later.slice(2).map(({ id }) => id))
      while ((await catalog.removeChanges(Date.now() + 1_000, 5)) > 0);
      expect(await catalog.readChanges(bucketId, last, 3)).toEqual({
        changes: [],
        next: last,
        seen: last,
        hasMore: false,
      })
      const [next] = newItems(1)
      await catalog.addItems(bucketId, inBlobStore(next ? [next] : []))
      expect((await writesOf(catalog, bucketId, last)).map(brief)).toEqual([['added', next?.id, next?.id]])
      expect(await catalog.readChanges(bucketId, (await end()) + 1, 3)).toBeNull()
    })

    test('FE1, FE5 a deleted bucket has no feed', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.addItems(bucketId, inBlobStore(newItems(3)))
      while (!(await catalog.deleteBucketChunk(bucketId, 2, 1)).isDeleted);
      await expect(catalog.readChanges(bucketId, 'start', 1)).rejects.toMatchObject({
        code: 'bucket-unknown',
      })
      expect(await catalog.removeChanges(Date.now() + 1_000, 5)).toBe(0)
    })

    test('FE1, WH2 the deletion of a bucket removes its feed, its keys and its webhooks in several transactions', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const other = await newBucket(catalog, 'c')
      await catalog.addToken(newToken('a', { bucket: 'b' }))
      await catalog.addToken(newToken('o', { bucket: 'c' }))
      for (let number = 0; number < 25; number += 1) {
        const request = { fingerprint: hashOf('k'), now: 0, expiresAt: 9e12 }
        await catalog.addItemsOnce(bucketId, [], { ...request, tokenId: 'a' as TokenId, key: `${number}` })
        await catalog.addItemsOnce(other, [], { ...request, tokenId: 'o' as TokenId, key: `${number}` })
      }
      await catalog.addItems(bucketId, inBlobStore(newItems(2)))
      const [row] = await writesOf(catalog, bucketId)
      for (let number = 0; number < 40; number += 1)
        await catalog.editItem(bucketId, row?.itemId ?? newItem().id, { caption: `${number}` }, null)
      const steps: boolean[] = []
      while (!steps.at(-1)) steps.push((await catalog.deleteBucketChunk(bucketId, 1, 1)).isDeleted)
      // 20 rows for each item of the limit: 44 changes and 25 keys, after the second item.
      expect(steps).toEqual([false, false, false, false, true])
      expect(await catalog.findBucketNamed('b')).toBeNull()
    })

    test('FE2 a reader that follows two writing processes sees each change once, in the order of the numbers', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const items = newItems(120)
      let isDone = false
      const seen: ItemChange[] = []
      const follow = async () => {
        for (let next = 0; ; ) {
          const wasDone = isDone
          const rows = await catalog.readChanges(bucketId, next, 7)
          seen.push(...(rows?.changes ?? []))
          next = rows?.next ?? next
          if (wasDone && !rows?.hasMore) return
          await new Promise((resolve) => setImmediate(resolve))
        }
      }
      const write = async () => {
        await Promise.all(
          items.map(async (item, index) => {
            const [first, second] = index % 2 ? [catalog, other] : [other, catalog]
            await first.addItems(bucketId, inBlobStore([item]))
            if (index % 3 === 0) await second.removeItems(bucketId, [item.id])
          }),
        )
        isDone = true
      }
      await Promise.all([follow(), write()])
      expect(seen).toHaveLength(160)
      const strip = (changes: readonly ItemChange[]) =>
        changes.map(({ number, kind, itemId }) => [number, kind, itemId])
      expect(strip(seen)).toEqual(strip(await writesOf(catalog, bucketId)))
    })

    test('FE6 a watcher is called at once after each kind of change by its process', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { trashDays: 3 })
      const limits = { maxItems: 9, maxBytes: null, maxFileSize: null, types: null, itemDays: null }
      await catalog.addToken(newToken('a', { bucket: 'b', limits }))
      const limitedBy = 'a' as TokenId
      const request = { tokenId: limitedBy, key: 'k', fingerprint: hashOf('k'), now: 0, expiresAt: 9e12 }
      const preview = { thumbhash: hashOf('t'), duration: null, width: 1, height: 2 }
      const [item, other] = [newItem(), newItem({ expiresAt: Date.now() + 9_000 })]
      const upload = newUpload(bucketId)
      await catalog.createUpload(upload)
      const onChange = vi.fn()
      onTestFinished(catalog.watchChanges(bucketId, onChange))
      await expect.poll(() => onChange.mock.calls.length).toBeGreaterThan(0)
      const changes = {
        addItems: () => catalog.addItems(bucketId, inBlobStore([item])),
        addLimitedItems: () => catalog.addLimitedItems(bucketId, inBlobStore([other]), limitedBy),
        addItemsOnce: () => catalog.addItemsOnce(bucketId, inBlobStore([newItem()]), request),
        editItem: () => catalog.editItem(bucketId, item.id, { caption: 'x' }, null),
        setPreview: () => catalog.setPreview(bucketId, item.id, preview),
        setTaken: () => catalog.setTaken(bucketId, item.id, { time: 1, offset: null }),
        labelItems: () => catalog.labelItems(bucketId, [item.id], { album: 'x' }),
        removeItems: () => catalog.removeItems(bucketId, [item.id]),
        restoreItems: () => catalog.restoreItems(bucketId, [item.id]),
        removeAgain: () => catalog.removeItems(bucketId, [item.id]),
        purgeItems: () => catalog.purgeItems(bucketId, [item.id]),
        expireItems: () => catalog.expireItems(bucketId, Date.now() + 10_000),
        deleteBucketChunk: () => catalog.deleteBucketChunk(bucketId, 1, 1),
      }
      const silent: string[] = []
      for (const [name, make] of Object.entries(changes)) {
        onChange.mockClear()
        await make()
        if (onChange.mock.calls.length === 0) silent.push(name)
      }
      expect(silent).toEqual([])
    })

    test('FE6 a watcher is called after changes of its bucket by any process, until it stops', async () => {
      const { catalog, other } = await openTwo(fresh)
      const [bucketId, elsewhere] = [await newBucket(catalog, 'b'), await newBucket(catalog, 'c')]
      const seen: string[] = []
      let reading = Promise.resolve()
      let next = 0
      const read = async () => {
        const rows = await catalog.readChanges(bucketId, next, 100)
        seen.push(...(rows?.changes.map(({ itemId }) => itemId) ?? []))
        next = rows?.next ?? next
      }
      const onChange = vi.fn(() => {
        reading = reading.then(read)
      })
      const stop = catalog.watchChanges(bucketId, onChange)
      onTestFinished(stop)
      const ids: string[] = []
      for (const writer of [catalog, other, other, catalog, other]) {
        const [own, upload] = [newItem(), newUpload(bucketId)]
        await writer.addItems(elsewhere, inBlobStore(newItems(1)))
        await writer.addItems(bucketId, inBlobStore([own]))
        await expect.poll(() => seen, { interval: 5 }).toEqual([...ids, own.id])
        await writer.createUpload(upload)
        await writer.finishUpload(upload.id, { ...newItem({ id: upload.itemId }), bytes: null }, 5)
        ids.push(own.id, upload.itemId)
        await expect.poll(() => seen, { interval: 5 }).toEqual(ids)
      }
      stop()
      onChange.mockClear()
      await catalog.addItems(bucketId, inBlobStore(newItems(1)))
      expect(onChange).not.toHaveBeenCalled()
    })
  })
}
