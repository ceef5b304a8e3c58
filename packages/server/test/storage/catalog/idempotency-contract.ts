import { describe, expect, test } from 'vitest'
import type { IdempotentRequest, TokenId } from '../../../src/storage/catalog/records.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import {
  allPages,
  contentOf,
  hashOf,
  inBlobStore,
  newBucket,
  newItem,
  newItems,
  newServiceToken,
  newToken,
  withBytes,
} from './samples.ts'

const request = (fields: Partial<IdempotentRequest> = {}): IdempotentRequest => ({
  tokenId: 'b' as TokenId,
  key: 'key',
  fingerprint: hashOf('content'),
  now: 1_000,
  expiresAt: 2_000,
  ...fields,
})

/** The behaviour of every catalog engine with requests that have an idempotency key. */
export function describeIdempotency(engine: string, fresh: Fresh): void {
  describe(`${engine}: keyed requests`, () => {
    test('I2 the first request adds its items, later ones return them, at any concurrency', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const results = await Promise.all(
        Array.from({ length: 40 }, (_, i) =>
          (i % 2 ? catalog : other).addItemsOnce(bucketId, inBlobStore(newItems(2)), request()),
        ),
      )
      const listed = await allPages(catalog, bucketId)
      expect(listed).toHaveLength(2)
      for (const result of results) expect(result).toEqual(results[0])
      expect(results[0]?.map(({ id }) => id)).toEqual(listed)
      expect(await other.findRepeated(bucketId, request())).toEqual(results[0])
    })

    test('I2 the items are returned completely, also after they are deleted', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const taken = { takenAt: 1_532_023_331_500, takenOffset: -210 }
      const items = [
        newItem({ filename: 'Übersicht 🗺.jpg', ...taken }),
        newItem({ extension: null, width: null }),
      ]
      expect(await catalog.findRepeated(bucketId, request())).toBeNull()
      expect(await catalog.addItemsOnce(bucketId, inBlobStore(items), request())).toEqual(items)
      for (const { id } of items) await catalog.removeItems(bucketId, [id])
      expect(await catalog.addItemsOnce(bucketId, inBlobStore(newItems(1)), request())).toEqual(items)
      expect(await catalog.findRepeated(bucketId, request())).toEqual(items)
      expect(await allPages(catalog, bucketId)).toEqual([])
    })

    test('I3 another fingerprint under the same key is refused', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.addItemsOnce(bucketId, inBlobStore(newItems(1)), request())
      const other = request({ fingerprint: hashOf('other') })
      const refusal = { name: 'Fault', code: 'idempotency-key-reused' }
      await expect(catalog.addItemsOnce(bucketId, inBlobStore(newItems(1)), other)).rejects.toMatchObject(
        refusal,
      )
      await expect(catalog.findRepeated(bucketId, other)).rejects.toMatchObject(refusal)
      expect(await allPages(catalog, bucketId)).toHaveLength(1)
    })

    test('I4 a key belongs to one token', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.addToken(newToken('c', { bucket: 'b' }))
      await catalog.addItemsOnce(bucketId, inBlobStore(newItems(1)), request())
      await catalog.addItemsOnce(bucketId, inBlobStore(newItems(1)), request({ tokenId: 'c' as TokenId }))
      expect(await allPages(catalog, bucketId)).toHaveLength(2)
    })

    test('I1 the bytes of a repeated request are stored once', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const [first, second] = [newItem(), newItem()]
      await catalog.addItemsOnce(bucketId, [withBytes(first)], request())
      const contentId = (await catalog.item(first.id))?.contentId
      expect(await catalog.addItemsOnce(bucketId, [withBytes(second)], request())).toMatchObject([
        { id: first.id },
      ])
      expect(await catalog.item(second.id)).toBeNull()
      expect(contentId && (await catalog.content(contentId))).toEqual(contentOf(first))
    })

    test('I2 the key of a failed request can be used again', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { maxItems: 1 })
      await expect(catalog.addItemsOnce(bucketId, inBlobStore(newItems(2)), request())).rejects.toMatchObject(
        {
          code: 'quota-exceeded',
        },
      )
      expect(await catalog.findRepeated(bucketId, request())).toBeNull()
      await catalog.addItemsOnce(
        bucketId,
        inBlobStore(newItems(1)),
        request({ fingerprint: hashOf('other') }),
      )
      expect(await allPages(catalog, bucketId)).toHaveLength(1)
    })

    test('I4, ST4 a service token has keys of its own in each bucket, which go with the bucket', async () => {
      const { catalog, other } = await openTwo(fresh)
      const [a, b] = [await newBucket(catalog, 'a'), await newBucket(catalog, 'b')]
      await catalog.addServiceToken(newServiceToken('s'))
      const keyed = request({ tokenId: 's' as TokenId })
      const [ofA, ofB] = [newItems(1), newItems(2)]
      expect(await catalog.addItemsOnce(a, inBlobStore(ofA), keyed)).toEqual(ofA)
      expect(await other.findRepeated(b, keyed)).toBeNull()
      expect(await other.findKeyed(b, keyed, 1_000)).toBeNull()
      expect(await other.addItemsOnce(b, inBlobStore(ofB), keyed)).toEqual(ofB)
      for (const [bucketId, items] of [
        [a, ofA],
        [b, ofB],
      ] as const)
        expect(await catalog.addItemsOnce(bucketId, inBlobStore(newItems(1)), keyed)).toEqual(items)
      while (!(await catalog.deleteBucketChunk(a, 10, 1_000)).isDeleted);
      expect(await catalog.findRepeated(a, keyed)).toBeNull()
      expect(await catalog.findRepeated(b, keyed)).toEqual(ofB)
    })

    test('I5 a key is removed at its expiry', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.addItemsOnce(bucketId, inBlobStore(newItems(1)), request())
      await catalog.addItemsOnce(
        bucketId,
        inBlobStore(newItems(1)),
        request({ key: 'later', expiresAt: 3_000 }),
      )
      expect(await catalog.findRepeated(bucketId, request({ now: 2_000 }))).toBeNull()
      await catalog.addItemsOnce(
        bucketId,
        inBlobStore(newItems(1)),
        request({ now: 2_000, expiresAt: 2_500 }),
      )
      expect(await allPages(catalog, bucketId)).toHaveLength(3)
      expect(await catalog.forgetRequests(2_500)).toBe(1)
      expect(await catalog.findRepeated(bucketId, request({ now: 1 }))).toBeNull()
      expect(await catalog.findRepeated(bucketId, request({ key: 'later' }))).toHaveLength(1)
    })
  })
}
