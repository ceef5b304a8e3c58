import { describe, expect, test } from 'vitest'
import { service } from '../../../src/core/token-rules.ts'

import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { allPages, contentOf, hashOf, newBucket, newItem, newItems, withBytes } from './samples.ts'

const day = 24 * 60 * 60 * 1000
const now = 1_790_000_000_000

/** The trash, on every catalog engine. */
export function describeTrash(engine: string, fresh: Fresh): void {
  describe(`${engine}: trash`, () => {
    test('Z1, Z3 trashed items are not listed and count in the bytes; restored ones have their places and texts', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { trashDays: 30 })
      const items = newItems(150)
      await catalog.addItems(bucketId, items.map(withBytes))
      const ids = items.map(({ id }) => id)
      const some = ids.filter((_, index) => index % 3 === 1)
      const [first = '' as never] = some
      await catalog.editItem(bucketId, first, { filename: 'renamed.jpg', caption: 'x' }, null)
      const before = await catalog.item(first)
      const revision = (await catalog.findGrant(hashOf('b')))?.revision ?? 0

      expect(await catalog.removeItems(bucketId, [newItem().id, ...some.toReversed()], service, now)).toEqual(
        {
          ids: some.toReversed(),
          tombstones: [],
        },
      )
      const left = ids.filter((id) => !some.includes(id))
      expect(await allPages(other, bucketId)).toEqual(left)
      expect(await other.findGrant(hashOf('b'))).toMatchObject({ total: 100 })
      expect((await other.findGrant(hashOf('b')))?.revision).toBeGreaterThan(revision)
      expect(await other.bucket(bucketId)).toMatchObject({ items: 100, bytes: 150_000 })
      expect(await other.findBucketWithTrash(bucketId)).toMatchObject({
        trashDays: 30,
        trash: { items: 50, bytes: 50_000 },
      })
      expect((await other.listBuckets()).map(({ name }) => name)).toEqual(['b'])
      expect(await other.findBucketNamed(`${bucketId}/trash`)).toBeNull()
      expect(await other.setBucket(`${bucketId}/trash`, { maxItems: 1 })).toBe(false)
      expect(await other.servability([first])).toEqual(['not'])
      expect(await other.removeItems(bucketId, [first], service, now)).toEqual({ ids: [], tombstones: [] })
      expect(await other.editItem(bucketId, first, { caption: 'y' }, null)).toBe('missing')
      expect(await other.findUnreferenced([first])).toEqual([])

      const { rows: listed } = await other.listTrash(bucketId, null, 20, now)
      expect(listed.map(({ item }) => item.id)).toEqual(some.slice(-20).toReversed())
      expect(listed[0]).toMatchObject({ deletedAt: now, expiresAt: now + 30 * day })
      const rest = await other.listTrash(bucketId, listed.at(-1)?.seq ?? null, 100, now)
      expect(rest.rows.map(({ item }) => item.id)).toEqual(some.slice(0, -20).toReversed())

      const wanted = [some[40], newItem().id, first, some[7]].flatMap((id) => id ?? [])
      const back = wanted.filter((id) => some.includes(id))
      expect(await other.restoreItems(bucketId, wanted, service, now + day)).toEqual(back)
      expect(await catalog.restoreItems(bucketId, wanted, service, now + day)).toEqual([])
      expect(await catalog.item(first)).toEqual(before)
      expect(before?.contentId && (await catalog.content(before.contentId))).toEqual(contentOf({ id: first }))
      expect(await catalog.servability(back)).toEqual(['servable', 'renamed', 'servable'])
      expect(await allPages(catalog, bucketId)).toEqual(
        ids.filter((id) => left.includes(id) || back.includes(id)),
      )
      expect(await catalog.bucket(bucketId)).toMatchObject({ items: 103, bytes: 150_000 })
      expect(await catalog.findBucketWithTrash(bucketId)).toMatchObject({
        trashDays: 30,
        trash: { items: 47, bytes: 47_000 },
      })

      // The same items again, beside new ones.
      const more = newItems(70)
      await catalog.addItems(bucketId, more.map(withBytes))
      await catalog.removeItems(bucketId, back, service, now + day)
      expect(await catalog.restoreItems(bucketId, some, service, now + day)).toEqual(some)
      expect(await allPages(other, bucketId)).toEqual([...ids, ...more.map(({ id }) => id)])
      expect(await catalog.findBucketWithTrash(bucketId)).toMatchObject({
        trashDays: 30,
        trash: { items: 0, bytes: 0 },
      })
    })

    test('Z4 purged items are removed with their bytes, and leave tombstones', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const other = await newBucket(catalog, 'other')
      await catalog.setBucket('b', { trashDays: 1 })
      const [text, picture, listed] = [newItem({ contentType: 'text/plain' }), newItem(), newItem()]
      await catalog.addItems(bucketId, [text, picture, listed].map(withBytes))
      const contentId = (await catalog.item(text.id))?.contentId
      const ids = [text.id, picture.id]
      await catalog.removeItems(bucketId, ids, service, now)
      expect(await catalog.purgeItems(other, ids)).toEqual({ ids: [], tombstones: [] })
      expect(await catalog.purgeItems(bucketId, [...ids, listed.id])).toEqual({
        ids,
        tombstones: [picture.id],
      })
      expect(await catalog.listTombstones()).toEqual([picture.id])
      expect(contentId && (await catalog.content(contentId))).toBeNull()
      expect(await catalog.restoreItems(bucketId, ids, service, now)).toEqual([])
      expect(await catalog.bucket(bucketId)).toMatchObject({ items: 1, bytes: 1_000 })
      expect(await catalog.findBucketWithTrash(bucketId)).toMatchObject({
        trashDays: 1,
        trash: { items: 0, bytes: 0 },
      })
    })

    test('Z3, Z5 an expired item is neither listed nor restored, and later settings do not change its time', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { trashDays: 2 })
      const [item, permanent] = [newItem(), newItem()]
      await catalog.addItems(bucketId, [withBytes(item), withBytes(permanent)])
      await catalog.removeItems(bucketId, [item.id], service, now)
      await catalog.setBucket('b', { trashDays: 0 })
      await catalog.removeItems(bucketId, [permanent.id], service, now)
      const end = now + 2 * day
      const listed = async (at: number) =>
        (await catalog.listTrash(bucketId, null, 9, at)).rows.map(({ item }) => item.id)
      expect([await listed(end - 1), await listed(end)]).toEqual([[item.id], []])
      const expired = async (at: number) => [
        await catalog.expiringTrashes(at),
        await catalog.expiredTrash(bucketId, at, 9),
      ]
      expect(await expired(end - 1)).toEqual([[], []])
      expect(await expired(end)).toEqual([[bucketId], [item.id]])
      expect(await catalog.restoreItems(bucketId, [item.id], service, end)).toEqual([])
      expect(await catalog.restoreItems(bucketId, [item.id], service, end - 1)).toEqual([item.id])
      expect(await expired(end)).toEqual([[], []])
    })

    test('Z3 a restore that exceeds the limit of items restores nothing, and bytes in the trash count', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { trashDays: 1, maxItems: 3, maxBytes: 4_000 })
      const items = newItems(3)
      const ids = items.map(({ id }) => id)
      await catalog.addItems(bucketId, items.map(withBytes))
      await catalog.removeItems(bucketId, ids.slice(0, 2), service, now)
      await catalog.addItems(bucketId, [withBytes(newItem())])
      await expect(catalog.addItems(bucketId, [withBytes(newItem())])).rejects.toMatchObject({
        code: 'quota-exceeded',
      })
      await expect(catalog.restoreItems(bucketId, ids, service, now)).rejects.toMatchObject({
        code: 'quota-exceeded',
      })
      expect(await catalog.restoreItems(bucketId, ids.slice(0, 1), service, now)).toEqual(ids.slice(0, 1))
      expect(await catalog.bucket(bucketId)).toMatchObject({ items: 3, bytes: 4_000 })
    })

    test('Z3, Z4 of concurrent restores, purges and deletes of one item, one takes it', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { trashDays: 1 })
      const items = newItems(40)
      const ids = items.map(({ id }) => id)
      await catalog.addItems(bucketId, items.map(withBytes))
      await catalog.removeItems(bucketId, ids, service, now)
      const results = await Promise.all(
        ids.flatMap((id, index) => {
          const [one, two] = index % 2 === 0 ? [catalog, other] : [other, catalog]
          return [
            one.restoreItems(bucketId, [id], service, now),
            two.restoreItems(bucketId, [id], service, now),
            two.purgeItems(bucketId, [id]).then((purged) => purged.ids),
          ]
        }),
      )
      expect(results.flat().toSorted()).toEqual(ids.toSorted())
      const left = await allPages(other, bucketId)
      expect(left).toEqual(ids.filter((id) => left.includes(id)))
      expect(await other.bucket(bucketId)).toMatchObject({ items: left.length, bytes: 1_000 * left.length })
      expect(await other.findBucketWithTrash(bucketId)).toMatchObject({
        trashDays: 1,
        trash: { items: 0, bytes: 0 },
      })
    })

    test('Q5 the trash of a deleted bucket is deleted with it', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { trashDays: 1 })
      const items = newItems(7)
      await catalog.addItems(bucketId, items.map(withBytes))
      await catalog.removeItems(
        bucketId,
        items.slice(0, 5).map(({ id }) => id),
        service,
        now,
      )
      let removed = 0
      for (let isDeleted = false; !isDeleted; ) {
        const chunk = await catalog.deleteBucketChunk(bucketId, 2, now)
        removed += chunk.items
        isDeleted = chunk.isDeleted
      }
      expect(removed).toBe(7)
      expect(await catalog.isNew()).toBe(true)
      expect((await catalog.listTombstones()).toSorted()).toEqual(items.map(({ id }) => id).toSorted())
    })
  })
}
