import { describe, expect, test } from 'vitest'
import { bucketOrders } from '../../../src/core/bucket-queries.ts'
import { settingsTag } from '../../../src/core/bucket-settings.ts'
import type { BucketPlace } from '../../../src/storage/catalog/bucket-list.ts'
import type { TokenId } from '../../../src/storage/catalog/records.ts'
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

const lease = { owner: 'first', lifetime: 30_000 }

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

    test('BK10 a deleted bucket is gone at once for every process, and its name is free', async () => {
      const { catalog, other } = await openTwo(fresh)
      const [id, kept] = [await newBucket(catalog, 'b'), await newBucket(catalog, 'kept')]
      const [item, trashed, shown] = [newItem(), newItem(), newItem()]
      await catalog.setBucket('b', { trashDays: 1 })
      await catalog.addItems(id, inBlobStore([item, trashed]))
      await catalog.addItems(kept, inBlobStore([shown]))
      await catalog.removeItems(id, [trashed.id], undefined, Date.now())
      const upload = newUpload(id, { length: 5 })
      await catalog.createUpload(upload)
      const user = newToken('user', { bucket: 'b', id: 'usr_000000000001' as TokenId })
      await catalog.addUser(user, null)
      expect(await other.servability([item.id, shown.id])).toEqual(['servable', 'servable'])
      expect(await other.findGrant(hashOf('b'))).toMatchObject({ revokedAt: null })

      expect(await catalog.deleteBucket('b', false, 7, lease)).toBe('has-items')
      expect(await catalog.deleteBucket('nobody', true, 7, lease)).toBeNull()
      expect(await other.findBucketNamed('b')).toMatchObject({ items: 1 })
      expect(await other.statistics()).toMatchObject({ items: 2, unfinishedUploads: 1 })
      expect(await catalog.deleteBucket('b', true, 7, lease)).toBe(id)

      expect(await other.findGrant(hashOf('b'))).toMatchObject({ revokedAt: 7 })
      expect(await other.findGrant(hashOf('user'))).toBeNull()
      expect(await other.item(item.id)).toBeNull()
      expect(await other.servability([item.id, shown.id])).toEqual(['not', 'servable'])
      expect(await other.findBucketNamed('b')).toBeNull()
      expect(await other.statistics()).toMatchObject({ items: 1, unfinishedUploads: 0 })
      expect(await other.findListedBucket('b')).toBeNull()
      expect((await other.listBuckets()).map(({ name }) => name)).toEqual(['kept'])
      expect((await other.listTokens()).map(({ bucket }) => bucket)).toEqual(['kept'])
      const late = { code: 'bucket-unknown' }
      await expect(other.addItems(id, inBlobStore([newItem()]))).rejects.toMatchObject(late)
      await expect(other.createUpload(newUpload(id))).rejects.toMatchObject(late)
      await expect(other.finishUpload(upload.id, withBytes(newItem({ size: 5 })), 9)).rejects.toMatchObject(
        late,
      )
      await expect(other.restoreItems(id, [trashed.id], undefined, 0)).rejects.toMatchObject(late)
      expect(await other.setBucket(`${id}/deleted`, { trashDays: 2 })).toBe(false)
      expect(await other.deleteBucket('b', true, 8, lease)).toBeNull()

      const again = await newBucket(other, 'b', 'again')
      expect(again).not.toBe(id)
      await other.addUser({ ...user, id: 'usr_000000000002' as TokenId }, null)
      expect(await other.findGrant(hashOf('user'))).toMatchObject({ bucketId: again })
      await other.addItems(again, inBlobStore([newItem()]))

      for (const left of await other.uploadsOf(id)) await other.removeUpload(left.id)
      while (!(await other.deleteBucketChunk(id, 1, 9)).isDeleted);
      expect((await catalog.listTombstones()).toSorted()).toEqual([item.id, trashed.id].toSorted())
      expect(await catalog.deletedBucketAfter(0)).toBeNull()
      expect(await catalog.page(again, 1)).toMatchObject({ total: 1 })
      expect(await catalog.page(kept, 1)).toMatchObject({ total: 1 })
    })

    test('BK10 a bucket without items is deleted; items that have expired do not count', async () => {
      const catalog = await openOne(fresh)
      const id = await newBucket(catalog, 'b')
      await catalog.addItems(id, inBlobStore([newItem({ expiresAt: Date.now() - 1 })]))
      expect(await catalog.deleteBucket('b', false, 1, lease)).toBe(id)
    })

    test('BK11 of several processes, one removes what a deleted bucket held, and another one goes on if it ends', async () => {
      const { catalog, other } = await openTwo(fresh)
      const id = await newBucket(catalog, 'b')
      expect(await catalog.claimDeletion(id, lease)).toBe(false)
      await catalog.deleteBucket('b', true, 1, lease)
      expect(await other.deletedBucketAfter(0)).toBe(id)
      expect(await other.deletedBucketAfter(id)).toBeNull()
      const second = { owner: 'second', lifetime: 30_000 }
      expect(await other.claimDeletion(id, second)).toBe(false)
      expect(await catalog.claimDeletion(id, { ...lease, lifetime: -1 })).toBe(true)
      expect(await other.claimDeletion(id, second)).toBe(true)
      expect(await catalog.claimDeletion(id, lease)).toBe(false)
      expect(await other.deleteBucketChunk(id, 10, 1)).toMatchObject({ isDeleted: true })
      expect(await other.claimDeletion(id, second)).toBe(false)
    })

    test('BK5 a bucket is created once for a key, with its first token', async () => {
      const { catalog, other } = await openTwo(fresh)
      const request = (name: string, nonce: string) => ({
        ...{ name, settings: { maxItems: 5, isPrivate: true }, createdAt: 3, token: newToken(nonce) },
        creation: { key: hashOf('key'), fingerprint: hashOf(name), nonce: hashOf(nonce) },
      })
      const created = await Promise.all(
        [catalog, other, catalog, other].map((one, index) => one.createNewBucket(request('b', `n${index}`))),
      )
      expect(new Set(created.map((one) => one?.id)).size).toBe(1)
      const tokens = await catalog.listTokens('b')
      expect(tokens).toHaveLength(1)
      for (const one of created) expect(one?.nonce).toEqual(hashOf(tokens[0]?.id ?? ''))
      await expect(other.createNewBucket(request('c', 'n'))).rejects.toMatchObject({
        code: 'idempotency-key-reused',
      })
      expect(await other.findBucketNamed('c')).toBeNull()
      const plain = { ...request('b', 'x'), creation: null }
      expect(await other.createNewBucket(plain)).toBeNull()
      expect(await other.createNewBucket({ ...plain, name: 'd' })).toMatchObject({ nonce: null })
      expect(await other.findListedBucket('b')).toMatchObject({ maxItems: 5, isPrivate: true, createdAt: 3 })
      await catalog.deleteBucket('b', false, 1, lease)
      expect((await catalog.createNewBucket(request('b', 'last')))?.nonce).toEqual(hashOf('last'))
    })

    test('BK7 settings are changed only if they are the expected ones', async () => {
      const { catalog, other } = await openTwo(fresh)
      const id = await newBucket(catalog, 'b')
      const tagOf = async () => {
        const bucket = await other.findBucketNamed('b')
        if (bucket === null) throw new Error('the bucket does not exist')
        return settingsTag(id, bucket)
      }
      const first = await tagOf()
      const results = await Promise.allSettled(
        [catalog, other, catalog, other].map((one, index) =>
          one.setBucket('b', { maxItems: 10 + index }, undefined, first),
        ),
      )
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
      expect(results.find(({ status }) => status === 'rejected')).toMatchObject({
        reason: { code: 'precondition-failed' },
      })
      expect(await other.setBucket('b', { maxItems: null }, undefined, await tagOf())).toBe(true)
      expect(await tagOf()).toBe(first)
    })

    test('BK2 lists have every bucket once, in each order, with the totals of one state', async () => {
      const catalog = await openOne(fresh)
      expect(await catalog.listBucketsAfter({ order: 'bytes', prefix: '' }, null, 5)).toEqual({
        totals: { buckets: 0, items: 0, bytes: 0 },
        rows: [],
      })
      const names = ['b', 'a-1', 'a-2', 'a', 'zz', 'a1']
      for (const [index, name] of names.entries()) {
        const id = await newBucket(catalog, name)
        await catalog.setBucket(name, { trashDays: 1 })
        const items = Array.from({ length: index % 3 }, () => newItem({ size: 10 * index }))
        await catalog.addItems(id, inBlobStore(items))
        if (index === 5)
          for (const { id: first } of items.slice(0, 1))
            await catalog.removeItems(id, [first], undefined, Date.now())
      }
      await catalog.deleteBucket('zz', true, 1, lease)
      const expected = (await catalog.listBuckets()).map(({ name, items, bytes, trash }) => ({
        name,
        items,
        bytes,
        trash,
      }))
      for (const prefix of ['', 'a', 'a-', 'none']) {
        const selected = expected.filter(({ name }) => name.startsWith(prefix))
        for (const order of bucketOrders) {
          const seen = []
          let after: BucketPlace | null = null
          for (;;) {
            const { rows, totals } = await catalog.listBucketsAfter({ order, prefix }, after, 2)
            expect(totals).toEqual({
              buckets: selected.length,
              items: selected.reduce((sum, { items }) => sum + items, 0),
              bytes: selected.reduce((sum, { bytes }) => sum + bytes, 0),
            })
            for (const { bucket } of rows) seen.push(bucket)
            if (rows.length < 2) break
            after = rows.at(-1)?.place ?? null
          }
          const facts = seen.map(({ name, items, bytes, trash }) => ({ name, items, bytes, trash }))
          const byName = facts.toSorted((one, next) => (one.name < next.name ? -1 : 1))
          expect(byName).toEqual(selected)
          const keys = seen.map(({ id, name, items, bytes }) =>
            order.startsWith('name')
              ? name
              : order.startsWith('items')
                ? items
                : order.startsWith('bytes')
                  ? bytes
                  : id,
          )
          const isDescending = /^(?:items|bytes)$|-desc$/.test(order)
          const sorted = keys.toSorted((one, next) => (one < next ? -1 : one > next ? 1 : 0))
          expect(keys).toEqual(isDescending ? sorted.reverse() : sorted)
        }
      }
    })

    test('Q5 changes to a deleted bucket are refused, and its id is never reused', async () => {
      const catalog = await openOne(fresh)
      const id = await newBucket(catalog, 'b')
      expect(await catalog.deleteBucketChunk(id, 1, 1)).toMatchObject({ isDeleted: true })
      const late = { code: 'bucket-unknown' }
      await expect(catalog.addItems(id, inBlobStore([newItem()]))).rejects.toMatchObject(late)
      await expect(catalog.createUpload(newUpload(id))).rejects.toMatchObject(late)
      await expect(catalog.page(id, 1)).rejects.toMatchObject(late)
      const again = await newBucket(catalog, 'b')
      await catalog.deleteBucketChunk(again, 1, 1)
      expect(new Set([id, again, await newBucket(catalog, 'b')]).size).toBe(3)
    })
  })
}
