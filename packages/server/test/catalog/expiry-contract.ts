import { describe, expect, test } from 'vitest'
import { service } from '../../src/core/actor.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { allPages, hashOf, newBucket, newItem, newItems, newUpload, withBytes } from './samples.ts'

const hour = 3_600_000

/** Items that expire, on every catalog engine. */
export function describeExpiry(engine: string, fresh: Fresh): void {
  describe(`${engine}: expiry`, () => {
    test('E2, E3 expired items are not served at once, and are removed with their counts before the bucket is read', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const now = Date.now()
      expect(await catalog.authorise(hashOf('b'))).toMatchObject({ nextExpiry: null, itemDays: null })
      const [gone, later, lasting] = [
        newItem({ expiresAt: now - 1 }),
        newItem({ expiresAt: now + hour }),
        newItem(),
      ]
      await catalog.addMedia(bucketId, [withBytes(lasting), withBytes(later)])
      expect(await other.authorise(hashOf('b'))).toMatchObject({ nextExpiry: now + hour })
      await catalog.addMedia(bucketId, [withBytes(gone)])
      const before = await other.authorise(hashOf('b'))
      expect(before).toMatchObject({ nextExpiry: now - 1, total: 3 })
      expect(await other.media(gone.id)).toBeNull()
      expect(await other.media(later.id)).toMatchObject({ expiresAt: now + hour })
      expect(await other.servability([gone.id, later.id, lasting.id])).toEqual([
        'not',
        'servable',
        'servable',
      ])
      expect(await other.expiringBuckets(now)).toEqual([bucketId])
      expect(await other.expireItems(bucketId)).toEqual({ ids: [gone.id], tombstones: [gone.id] })
      expect(await other.expireItems(bucketId)).toEqual({ ids: [], tombstones: [] })
      const after = await catalog.authorise(hashOf('b'))
      expect(after).toMatchObject({ nextExpiry: now + hour, total: 2 })
      expect(after?.revision).toBeGreaterThan(before?.revision ?? 0)
      expect(await allPages(catalog, bucketId)).toEqual([lasting.id, later.id])
      expect(await catalog.bucket(bucketId)).toMatchObject({ items: 2, bytes: 2_000 })
      expect(await catalog.expiringBuckets(now)).toEqual([])
      expect((await catalog.expireItems(bucketId, now + hour)).ids).toEqual([later.id])
      expect(await catalog.authorise(hashOf('b'))).toMatchObject({ nextExpiry: null, total: 1 })
    })

    test('E3 an item in the trash leaves it when it expires, and one that is restored keeps its expiry', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { trashDays: 30 })
      const now = Date.now()
      const items = [newItem({ expiresAt: now + hour }), newItem({ expiresAt: now + 2 * hour }), newItem()]
      const [first, second, lasting] = items.map(({ id }) => id)
      if (!first || !second || !lasting) throw new Error('no items')
      await catalog.addMedia(bucketId, items.map(withBytes))
      await catalog.removeMedia(bucketId, [first, second, lasting], service, now)
      const trashed = await catalog.trash(bucketId, null, 9, now)
      expect(trashed.map(({ expiresAt }) => expiresAt - now).toReversed()).toEqual([
        hour,
        2 * hour,
        30 * 24 * hour,
      ])
      expect((await catalog.trash(bucketId, null, 9, now + hour)).map(({ item }) => item.id)).not.toContain(
        first,
      )
      expect(await catalog.restoreMedia(bucketId, [first, second], service, now + hour)).toEqual([second])
      expect(await catalog.authorise(hashOf('b'))).toMatchObject({ nextExpiry: now + 2 * hour, total: 1 })
      expect((await catalog.expiredTrash(now + hour, 9)).map(({ id }) => id)).toEqual([first])
      expect((await catalog.expireItems(bucketId, now + 2 * hour)).ids).toEqual([second])
    })

    test('E1, E3 many items expire in steps, and a resumable upload and the settings have an expiry', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { itemDays: 7 })
      expect(await catalog.authorise(hashOf('b'))).toMatchObject({ itemDays: 7 })
      const now = Date.now()
      await catalog.addMedia(
        bucketId,
        newItems(700).map((item, index) =>
          withBytes({ ...item, expiresAt: index % 2 === 0 ? now : now + hour }),
        ),
      )
      const upload = newUpload(bucketId, { length: 1_000 })
      await catalog.createUpload(upload)
      const item = newItem({ id: upload.mediaId, size: 1_000, expiresAt: now })
      expect(await catalog.finishUpload(upload.id, { item, bytes: null }, 5)).toBe(true)
      expect((await catalog.expireItems(bucketId, now)).ids).toHaveLength(351)
      expect((await catalog.expireItems(bucketId, now + hour)).ids).toHaveLength(350)
      expect(await catalog.bucket(bucketId)).toMatchObject({ items: 0, bytes: 0, itemDays: 7 })
    })
  })
}
