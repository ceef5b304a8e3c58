import { describe, expect, test } from 'vitest'
import { newWebhookId, newWebhookSecret } from '../../../src/core/webhook-rules.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import type { BucketId } from '../../../src/storage/catalog/records.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { inBlobStore, newBucket, newItems } from './samples.ts'

const endOf = async (catalog: Catalog, bucketId: BucketId) =>
  (await catalog.readChanges(bucketId, 'now', 0))?.next ?? -1

async function withWebhook(catalog: Catalog, bucketId: BucketId) {
  const id = newWebhookId()
  await catalog.addWebhook({
    ...{ id, bucketId, url: 'https://example.com/', kinds: [], batch: 1 },
    ...{ secret: newWebhookSecret(), createdAt: 0 },
  })
  return id
}

/** Data that have gone back, on every catalog engine. */
export function describeHistory(engine: string, fresh: Fresh): void {
  describe(`${engine}: history`, () => {
    test('F13 numbers of changes have random steps, so that another history does not repeat them', async () => {
      const numbersOf = async () => {
        const catalog = await openOne(fresh)
        const bucketId = await newBucket(catalog, 'b')
        for (const item of newItems(20)) await catalog.addItems(bucketId, inBlobStore([item]))
        const rows = await catalog.readChanges(bucketId, 'start', 100)
        return rows?.changes.map(({ number }) => number) ?? []
      }
      const [one, other] = [await numbersOf(), await numbersOf()]
      expect(one.filter((number) => other.includes(number))).toEqual([])
      expect(Math.max(...one)).toBeLessThan(20 * (2 ** 20 + 1))
    })

    test('F13, FE5, WH8 a change that the feed never had renews the history: places, revisions and webhooks', async () => {
      const catalog = await openOne(fresh)
      const [bucketId, elsewhere] = [await newBucket(catalog, 'b'), await newBucket(catalog, 'c')]
      await catalog.checkHistory([], true)
      for (const id of [bucketId, elsewhere]) await catalog.addItems(id, inBlobStore(newItems(3)))
      const webhook = await withWebhook(catalog, elsewhere)
      const [end, other] = [await endOf(catalog, bucketId), await endOf(catalog, elsewhere)]
      expect(await catalog.checkHistory([{ bucketId, number: end }])).toBe(false)
      expect(await catalog.checkHistory([{ bucketId: (bucketId + 9) as BucketId, number: 5 }])).toBe(false)
      expect((await catalog.findWebhook(webhook))?.position).toBe(other)
      expect(await catalog.hasHadRevision(elsewhere, other)).toBe(true)

      expect(await catalog.readChanges(bucketId, end + 1, 10)).toBeNull()
      for (const id of [bucketId, elsewhere])
        for (const number of [0, end, other]) expect(await catalog.readChanges(id, number, 10)).toBeNull()
      expect(await catalog.readChanges(elsewhere, 'start', 10)).toMatchObject({ changes: [], hasMore: false })
      expect((await catalog.findWebhook(webhook))?.position).toBeNull()
      expect(await catalog.hasHadRevision(elsewhere, other)).toBe(false)
      const renewed = await endOf(catalog, elsewhere)
      expect(await catalog.hasHadRevision(elsewhere, renewed)).toBe(true)

      // Readers of other changes that were lost are refused, without another renewal.
      expect(await catalog.readChanges(elsewhere, other + 7, 10)).toBeNull()
      expect(await endOf(catalog, elsewhere)).toBe(renewed)
      const [item] = newItems(1)
      await catalog.addItems(elsewhere, inBlobStore(item ? [item] : []))
      const rows = await catalog.readChanges(elsewhere, renewed, 10)
      expect(rows?.changes.map(({ itemId }) => itemId)).toEqual([item?.id])
      while ((await catalog.removeChanges(Date.now() + 1_000, 2)) > 0);
      expect(await catalog.readChanges(elsewhere, rows?.next ?? -1, 10)).toMatchObject({ changes: [] })
    })

    test('F13, FE5 a reader whose items show an effect of a lost change is refused, before that change in the feed too', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.checkHistory([], true)
      for (const item of newItems(3)) await catalog.addItems(bucketId, inBlobStore([item]))
      const rows = await catalog.readChanges(bucketId, 'start', 1)
      const last = await endOf(catalog, bucketId)
      expect(rows).toMatchObject({ hasMore: true, seen: last, changes: [{ seen: last }] })
      const number = rows?.next ?? -1
      const read = (seen: number) => catalog.readChanges(bucketId, { number, seen }, 10)
      expect((await read(last))?.changes).toHaveLength(2)
      expect(await read(last + 1)).toBeNull()
      // It has renewed the history.
      expect(await read(last)).toBeNull()
    })

    test('F13, Q5 readers of a bucket that is being deleted are refused, and renew nothing', async () => {
      const catalog = await openOne(fresh)
      const [doomed, other] = [await newBucket(catalog, 'doomed'), await newBucket(catalog, 'other')]
      await catalog.checkHistory([], true)
      await catalog.addItems(doomed, inBlobStore(newItems(50)))
      await catalog.addItems(other, inBlobStore(newItems(1)))
      const [first] = (await catalog.readChanges(doomed, 'start', 1))?.changes ?? []
      const end = await endOf(catalog, other)
      // The step that removes the last items removes a part of the changes.
      for (let step = 0; step < 25; step += 1)
        expect(await catalog.deleteBucketChunk(doomed, 2, 0)).toMatchObject({ items: 2, isDeleted: false })
      expect(await catalog.readChanges(doomed, first?.number ?? -1, 10)).toBeNull()
      expect(await catalog.checkHistory(catalog.announcedChanges())).toBe(false)
      expect(await catalog.readChanges(other, end, 10)).toMatchObject({ changes: [] })
    })

    test('F13 of several processes that notice it, one renews the history', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.checkHistory([], true)
      await catalog.addItems(bucketId, inBlobStore(newItems(3)))
      const lost = [{ bucketId, number: (await endOf(catalog, bucketId)) + 1 }]
      const settled = await Promise.all([catalog.checkHistory(lost), other.checkHistory(lost)])
      expect(settled.toSorted()).toEqual([false, true])
    })

    test('F13 a process knows the last changes whose effects it has read', async () => {
      const catalog = await openOne(fresh)
      const buckets: BucketId[] = []
      for (let number = 0; number < 40; number += 1) {
        const bucketId = await newBucket(catalog, `b${number}`)
        await catalog.addItems(bucketId, inBlobStore(newItems(2)))
        buckets.push(bucketId)
      }
      for (const bucketId of buckets) await catalog.readChanges(bucketId, 'start', 1)
      const last = await catalog.readChanges(buckets[39] ?? (0 as BucketId), 'now', 0)
      const announced = catalog.announcedChanges()
      expect(announced.map(({ bucketId }) => bucketId)).toEqual(buckets.slice(8))
      expect(announced.at(-1)?.number).toBe(last?.next)
    })
  })
}
