import { describe, expect, test } from 'vitest'
import { itemKeyOf } from '../../../src/core/object-key-rules.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import type { BucketId } from '../../../src/storage/catalog/records.ts'
import { type Fresh, openTwo } from './fresh-data.ts'
import { hashOf, newBucket, newItem, newKey, withBytes } from './samples.ts'

const replacing = { mayReplace: true }

async function put(catalog: Catalog, bucketId: BucketId, key: string, fields = {}) {
  const item = newItem(fields)
  const change = await catalog.putKey(bucketId, newKey(key, item), replacing, null)
  return { item, change }
}

async function namesOf(catalog: Catalog, bucketId: BucketId, selection = {}) {
  const all = { prefix: '', delimiter: null, after: null, limit: 1_000 }
  const entries = await catalog.listKeys(bucketId, { ...all, ...selection })
  return entries.map((entry) => ('key' in entry ? entry.key : `${entry.prefix}*`))
}

/** The behaviour of every catalog engine with the keys of items. */
export function describeObjectKeys(engine: string, fresh: Fresh): void {
  describe(`${engine}: keys of items`, () => {
    test('OK1 a key names an item, for every process, byte by byte', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const keys = ['a', 'A', 'a/b', 'a\u0000', 'é', 'e\u0301', '\u{1f600}'.repeat(256)]
      const items = new Map<string, string>()
      for (const key of keys) items.set(key, (await put(catalog, bucketId, key)).item.id)
      for (const key of keys)
        expect(await other.findKey(bucketId, key)).toMatchObject({
          key,
          item: { id: items.get(key), bucketId },
        })
      expect(await other.findKey(bucketId, 'b')).toBeNull()
      expect(await other.findKey(await newBucket(catalog, 'other'), 'a')).toBeNull()
      expect(await namesOf(other, bucketId)).toEqual(
        keys.toSorted((one, two) => Buffer.compare(Buffer.from(one), Buffer.from(two))),
      )
    })

    test('OK2 a put replaces the item of its key in one transaction, or changes nothing', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const first = await put(catalog, bucketId, 'k')
      const second = await put(other, bucketId, 'k')
      expect(second.change).toEqual({ refused: null, ids: [first.item.id], tombstones: [first.item.id] })
      expect(await catalog.item(first.item.id)).toBeNull()
      expect(await catalog.findKey(bucketId, 'k')).toMatchObject({ item: { id: second.item.id } })
      const third = newKey('k', newItem(), { etag: 'c'.repeat(32) })
      expect(await catalog.putKey(bucketId, third, { mayReplace: false }, null)).toEqual({
        refused: 'replacement-forbidden',
      })
      for (const [conditions, refused] of [
        [{ ifNoneMatch: '*' }, 'precondition-failed'],
        [{ ifMatch: 'b'.repeat(32) }, 'precondition-failed'],
      ] as const)
        expect(await catalog.putKey(bucketId, third, { ...replacing, ...conditions }, null)).toEqual({
          refused,
        })
      expect(await catalog.putKey(bucketId, newKey('new'), { ...replacing, ifMatch: '*' }, null)).toEqual({
        refused: 'key-unknown',
      })
      expect(await catalog.findKey(bucketId, 'k')).toMatchObject({ item: { id: second.item.id } })
      expect(await catalog.bucket(bucketId)).toMatchObject({ items: 1 })
      expect(
        await catalog.putKey(bucketId, third, { ...replacing, ifMatch: 'a'.repeat(32) }, null),
      ).toMatchObject({ refused: null })
    })

    test('OK2 a replaced item frees its place in the quota, unless it is in the trash', async () => {
      const { catalog } = await openTwo(fresh)
      await catalog.createBucket('b', { maxItems: 1, maxBytes: 1_500 }, 1)
      const bucketId = await newBucket(catalog, 'b')
      await put(catalog, bucketId, 'k')
      await put(catalog, bucketId, 'k')
      await expect(put(catalog, bucketId, 'other')).rejects.toMatchObject({ code: 'quota-exceeded' })
      await catalog.setBucket('b', { trashDays: 1 })
      await expect(put(catalog, bucketId, 'k')).rejects.toMatchObject({ code: 'quota-exceeded' })
      expect(await namesOf(catalog, bucketId)).toEqual(['k'])
      expect(await catalog.bucket(bucketId)).toMatchObject({ items: 1, bytes: 1_000 })
    })

    test('OK3 of two puts at a time for a new key, one is made', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      for (let round = 0; round < 20; round += 1) {
        const puts = [catalog, other, catalog, other].map((one) =>
          one.putKey(bucketId, newKey(`k${round}`), { ...replacing, ifNoneMatch: '*' }, null),
        )
        const refusals = (await Promise.all(puts)).map(({ refused }) => refused)
        expect(refusals.filter((refused) => refused === null)).toHaveLength(1)
        expect(refusals.filter((refused) => refused === 'precondition-failed')).toHaveLength(3)
      }
      expect(await catalog.bucket(bucketId)).toMatchObject({ items: 20 })
    })

    test('OK4 an item without a key has one of its number, and a restored one too', async () => {
      const { catalog } = await openTwo(fresh)
      await catalog.createBucket('b', { trashDays: 1 }, 1)
      const bucketId = await newBucket(catalog, 'b')
      const [one, other] = [newItem({ extension: null }), newItem()]
      await catalog.addItems(bucketId, [withBytes(one)])
      const keyed = await put(catalog, bucketId, 'k')
      await catalog.addItems(bucketId, [withBytes(other)])
      expect(await namesOf(catalog, bucketId)).toEqual([itemKeyOf(0, one), itemKeyOf(2, other), 'k'])
      expect(await catalog.findKey(bucketId, itemKeyOf(2, other))).toMatchObject({
        item: { id: other.id },
        details: null,
      })
      for (const wrong of [
        itemKeyOf(1, other),
        itemKeyOf(0, { ...one, extension: 'jpg' }),
        itemKeyOf(1, keyed.item),
      ])
        expect(await catalog.findKey(bucketId, wrong)).toBeNull()
      expect(await catalog.removeKey(bucketId, 'k', {})).toMatchObject({ refused: null })
      expect(await catalog.findKey(bucketId, 'k')).toBeNull()
      await put(catalog, bucketId, 'k')
      await catalog.restoreItems(bucketId, [keyed.item.id])
      expect(await namesOf(catalog, bucketId)).toEqual([
        itemKeyOf(0, one),
        itemKeyOf(1, keyed.item),
        itemKeyOf(2, other),
        'k',
      ])
      expect(await catalog.removeKey(bucketId, itemKeyOf(1, keyed.item), {})).toMatchObject({ refused: null })
      expect(await namesOf(catalog, bucketId)).toEqual([itemKeyOf(0, one), itemKeyOf(2, other), 'k'])
    })

    test('OK4 the items of many keys are removed in one transaction, and those of wrong keys stay', async () => {
      const { catalog } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const [one, other] = [newItem({ extension: null }), newItem()]
      await catalog.addItems(bucketId, [withBytes(one), withBytes(other)])
      await put(catalog, bucketId, 'expired', { expiresAt: 5 })
      for (const key of ['a', 'b\0', 'kept']) await put(catalog, bucketId, key)
      const wrong = [
        itemKeyOf(1, one),
        itemKeyOf(1, { ...other, extension: null }),
        'none',
        'expired',
        '_items/a',
      ]
      expect(await catalog.removeKeys(bucketId, wrong)).toEqual({ ids: [], tombstones: [] })
      const keys = [...wrong, itemKeyOf(0, one), 'a', 'b\0', 'a', itemKeyOf(0, one)]
      expect((await catalog.removeKeys(bucketId, keys)).ids).toHaveLength(3)
      expect(await namesOf(catalog, bucketId)).toEqual([itemKeyOf(1, other), 'kept'])
    })

    test('OK5 a key goes with its item, however that leaves the bucket', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const { item } = await put(catalog, bucketId, 'removed')
      await put(catalog, bucketId, 'expired', { expiresAt: 5 })
      expect(await namesOf(catalog, bucketId)).toEqual(['removed'])
      expect(await catalog.findKey(bucketId, 'expired')).toBeNull()
      await catalog.putKey(bucketId, newKey('expired'), { ...replacing, ifNoneMatch: '*' }, null)
      await put(catalog, bucketId, 'swept', { expiresAt: 5 })
      await catalog.expireItems(bucketId)
      await other.removeItems(bucketId, [item.id])
      expect(await namesOf(catalog, bucketId)).toEqual(['expired'])
      await catalog.deleteBucket('b', true, 1, { owner: 'o', lifetime: 1 })
      await catalog.deleteBucketChunk(bucketId, 100, 1)
      await catalog.deleteBucketChunk(bucketId, 100, 1)
      expect(await namesOf(catalog, bucketId)).toEqual([])
    })

    test('OK10 the key of a deleted item passes to the item that replaces it, if that has it as its path and no key', async () => {
      const { catalog, other } = await openTwo(fresh)
      await catalog.createBucket('b', { trashDays: 1 }, 1)
      const bucketId = await newBucket(catalog, 'b')
      const foreign = newItem({ path: 'k' })
      await catalog.addItems(await newBucket(catalog, 'other'), [withBytes(foreign)])
      const headers = {
        ...{ contentType: 'image/jpeg', contentEncoding: 'gzip', cacheControl: 'no-store', expires: 'x' },
        ...{
          metadata: { mtime: '1' },
          checksum: { algorithm: 'CRC32', value: 'AAAAAA==', type: 'FULL_OBJECT' },
        },
      }
      const first = newItem({ path: 'k', contentType: 'image/jpeg' })
      const stored = newKey('k', first, { isPublic: true, headers: JSON.stringify(headers), parts: '[]' })
      await catalog.putKey(bucketId, stored, replacing, null)
      const successor = newItem({ path: 'k', contentType: 'image/jpeg', size: 7 })
      const [elsewhere, expired] = [newItem({ path: 'l' }), newItem({ path: 'k', expiresAt: 5 })]
      await catalog.addItems(bucketId, [successor, elsewhere, expired].map(withBytes))
      const keyed = await put(catalog, bucketId, 'm', { path: 'k' })

      expect(await other.replaceItems(bucketId, [first.id], { [first.id]: successor.id })).toMatchObject({
        ids: [first.id],
      })
      expect(await catalog.findKey(bucketId, 'k')).toMatchObject({
        item: { id: successor.id },
        details: {
          ...{
            etag: `${Buffer.from(successor.sha256).toString('hex', 0, 16)}-1`,
            parts: null,
            isPublic: true,
          },
          headers: JSON.stringify({
            ...{ contentType: 'image/jpeg', cacheControl: 'no-store', expires: 'x', metadata: {} },
          }),
        },
      })
      expect(await namesOf(catalog, bucketId)).toEqual([itemKeyOf(2, elsewhere), 'k', 'm'])
      const entry = await catalog.listKeys(bucketId, { prefix: 'k', delimiter: null, after: null, limit: 1 })
      expect(entry).toMatchObject([{ size: 7 }])
      expect(await catalog.keysOfItems(bucketId, [successor.id, elsewhere.id, keyed.item.id])).toEqual(
        new Map([
          [successor.id, 'k'],
          [keyed.item.id, 'm'],
        ]),
      )
      // Each of these may not have the key, which goes with its item.
      for (const { id } of [elsewhere, expired, foreign, first, keyed.item, successor]) {
        const { item } = await put(catalog, bucketId, 'k')
        await catalog.replaceItems(bucketId, [item.id], { [item.id]: id })
        expect(await catalog.findKey(bucketId, 'k'), id).toBeNull()
      }
      expect(await catalog.keysOfItems(bucketId, [keyed.item.id])).toEqual(new Map([[keyed.item.id, 'm']]))
      const { item } = await put(catalog, bucketId, 'k\0')
      await catalog.replaceItems(bucketId, [item.id], { [item.id]: elsewhere.id })
      expect(await namesOf(catalog, bucketId)).toEqual([itemKeyOf(2, elsewhere), 'm'])
    })

    test('OK6 keys that are equal up to a delimiter are one entry of a list, which goes on after any of them', async () => {
      const { catalog } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      for (const key of ['a', 'a/', 'a/b', 'a/c/d', 'b', 'c/1', 'c/2']) await put(catalog, bucketId, key)
      await catalog.addItems(bucketId, [withBytes(newItem())])
      const slash = { delimiter: '/' }
      expect(await namesOf(catalog, bucketId, slash)).toEqual(['_items/*', 'a', 'a/*', 'b', 'c/*'])
      expect(await namesOf(catalog, bucketId, { ...slash, after: 'a', limit: 2 })).toEqual(['a/*', 'b'])
      expect(await namesOf(catalog, bucketId, { ...slash, after: 'a/' })).toEqual(['b', 'c/*'])
      expect(await namesOf(catalog, bucketId, { ...slash, prefix: 'a/' })).toEqual(['a/', 'a/b', 'a/c/*'])
      expect(await namesOf(catalog, bucketId, { prefix: 'a', after: 'a/b' })).toEqual(['a/c/d'])
    })

    test('OK6 a page may end at any entry of a long list of keys and entries', async () => {
      const { catalog } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const keys = Array.from({ length: 20 }, (_, number) => `a${number + 10}`)
      for (const key of [...keys, 'b/1', 'b/2', ...keys.map((key) => `c${key}`), 'd/1', 'e'])
        await put(catalog, bucketId, key)
      const expected = [...keys, 'b/*', ...keys.map((key) => `c${key}`), 'd/*', 'e']
      for (const limit of [1, 2, 15, 16, 17, 19, 20, 21, 22, 41, 43, 44, 50]) {
        const slash = { delimiter: '/', limit }
        expect(await namesOf(catalog, bucketId, slash)).toEqual(expected.slice(0, limit))
        expect(await namesOf(catalog, bucketId, { ...slash, after: 'a12' })).toEqual(
          expected.slice(3, 3 + limit),
        )
      }
    })

    test('OK8 a bucket has public keys only if that is set, whether it is private or not', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      for (const settings of [
        {},
        { publicKeys: true },
        { isPrivate: true, signedPages: true },
        { publicKeys: false },
      ]) {
        await catalog.setBucket('b', settings)
        const {
          publicKeys = false,
          isPrivate = false,
          signedPages = false,
        } = (await other.bucket(bucketId)) ?? {}
        expect(await other.findGrant(hashOf('b'))).toMatchObject({
          publicKeys,
          isPrivate,
          signsPages: signedPages,
        })
        expect(publicKeys).toBe(settings.publicKeys ?? 'isPrivate' in settings)
      }
    })

    test('OK7 the flag and the headers of a key change without its item', async () => {
      const { catalog } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const { item } = await put(catalog, bucketId, 'k')
      expect(await catalog.editKey(bucketId, 'k', { isPublic: true }, {})).toMatchObject({ refused: null })
      expect(
        await catalog.editKey(bucketId, 'k', { headers: '{}', modifiedAt: 7 }, { ifItem: newItem().id }),
      ).toEqual({ refused: 'precondition-failed' })
      expect(
        await catalog.editKey(bucketId, 'k', { headers: '{}', modifiedAt: 7 }, { ifItem: item.id }),
      ).toMatchObject({ refused: null })
      expect(await catalog.editKey(bucketId, 'none', { isPublic: true }, {})).toEqual({
        refused: 'key-unknown',
      })
      expect(await catalog.findKey(bucketId, 'k')).toMatchObject({
        item: { id: item.id },
        details: { isPublic: true, headers: '{}', modifiedAt: 7 },
      })
    })
  })
}
