import { describe, expect, test } from 'vitest'
import { type ItemId, newMultipartId } from '../../../src/core/ids.ts'
import type {
  MultipartEntry,
  MultipartPlace,
} from '../../../src/storage/catalog/objects/multipart-uploads.ts'
import type { TokenId } from '../../../src/storage/catalog/records.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { newBucket, newMultipart, newPart, newToken } from './samples.ts'

const now = 1_790_000_000_000
const later = now + 3_600_000

const textOf = (entry: MultipartEntry) => ('upload' in entry ? entry.upload.key : `${entry.prefix}*`)

/** The behaviour of every catalog engine with uploads of objects in parts. */
export function describeMultiparts(engine: string, fresh: Fresh): void {
  describe(`${engine}: uploads in parts`, () => {
    test('MU1 an upload and its parts are stored with all fields, for every process', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const upload = newMultipart({ key: 'a/\u{1f600}é \u0001', isPublic: true, checksum: null })
      await catalog.createMultipart(bucketId, upload)
      expect(await other.findMultipart(bucketId, upload.id)).toEqual({ ...upload, bucketId, completed: null })
      expect(await other.findMultipart(await newBucket(catalog, 'other'), upload.id)).toBeNull()
      const parts = [newPart(10_000), newPart(2), newPart(1)]
      for (const part of parts)
        expect(await catalog.putPart(bucketId, upload.id, part, later + 5)).toEqual([])
      expect(await other.listParts(upload.id, 0, 10)).toEqual(parts.toReversed())
      expect(await other.listParts(upload.id, 1, 1)).toEqual([parts[1]])
      expect(await other.findMultipart(bucketId, upload.id)).toMatchObject({ expiresAt: later + 5 })
      expect(await catalog.putPart(bucketId, newMultipartId(now), newPart(1), later)).toBeNull()
    })

    test('MU1 a part that is stored again replaces the earlier one, whose blob may be deleted', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const upload = newMultipart()
      await catalog.createMultipart(bucketId, upload)
      const first = newPart(1)
      await catalog.addIntents([first.itemId], 0)
      await catalog.putPart(bucketId, upload.id, first, later)
      expect(await catalog.listIntents()).toEqual([])
      expect(await catalog.findUnreferenced([first.itemId])).toEqual([])
      const again = [newPart(1, 7), newPart(1, 8), newPart(1, 9)]
      const replaced = await Promise.all(
        again.map((part, index) => (index === 1 ? other : catalog).putPart(bucketId, upload.id, part, later)),
      )
      const [last] = await catalog.listParts(upload.id, 0, 2)
      const ids = [first, ...again].map(({ itemId }) => itemId)
      expect(replaced.flat().toSorted()).toEqual(ids.filter((id) => id !== last?.itemId).toSorted())
      expect((await catalog.removableBlobs(ids)).toSorted()).toEqual(replaced.flat().toSorted())
      expect(await catalog.bucket(bucketId)).toMatchObject({ reservedItems: 1, reservedBytes: last?.size })
    })

    test('MU3 an upload reserves one item and the bytes of its parts, in the quota and in the limits', async () => {
      const { catalog } = await openTwo(fresh)
      await catalog.createBucket('b', { maxItems: 2, maxBytes: 1_000 }, now)
      const limits = { maxItems: 1, maxBytes: 500, maxFileSize: null, types: null, itemDays: null }
      await catalog.addToken(newToken('limited', { bucket: 'b', limits }))
      const bucketId = await newBucket(catalog, 'b', 'full')
      const limited = newMultipart({ limitedBy: 'limited' as TokenId })
      await catalog.createMultipart(bucketId, limited)
      await expect(
        catalog.createMultipart(bucketId, newMultipart({ limitedBy: 'limited' as TokenId })),
      ).rejects.toMatchObject({ code: 'token-limit-exceeded' })
      const free = newMultipart()
      await catalog.createMultipart(bucketId, free)
      await expect(catalog.createMultipart(bucketId, newMultipart())).rejects.toMatchObject({
        code: 'quota-exceeded',
      })
      await catalog.putPart(bucketId, limited.id, newPart(1, 300), later)
      await expect(catalog.putPart(bucketId, limited.id, newPart(2, 201), later)).rejects.toMatchObject({
        code: 'token-limit-exceeded',
      })
      // The bytes of the replaced part are free.
      await catalog.putPart(bucketId, limited.id, newPart(1, 500), later)
      await expect(catalog.putPart(bucketId, free.id, newPart(1, 501), later)).rejects.toMatchObject({
        code: 'quota-exceeded',
      })
      await catalog.putPart(bucketId, free.id, newPart(1, 500), later)
      expect(await catalog.bucket(bucketId)).toMatchObject({ reservedItems: 2, reservedBytes: 1_000 })
      expect(await catalog.removeMultipart(bucketId, limited.id)).toHaveLength(1)
      expect(await catalog.bucket(bucketId)).toMatchObject({ reservedItems: 1, reservedBytes: 500 })
      await catalog.createMultipart(bucketId, newMultipart({ limitedBy: 'limited' as TokenId }))
    })

    test('MU2 an upload that is removed has no parts, and its blobs may be deleted', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const upload = newMultipart()
      await catalog.createMultipart(bucketId, upload)
      const parts = [newPart(1), newPart(2)]
      for (const part of parts) await catalog.putPart(bucketId, upload.id, part, later)
      const removals = [catalog, other].map((one) => one.removeMultipart(bucketId, upload.id))
      const removed = (await Promise.all(removals)).filter((ids) => ids !== null)
      const ids = parts.map(({ itemId }) => itemId).toSorted()
      expect(removed.map((some) => some.toSorted())).toEqual([ids])
      expect(await catalog.findMultipart(bucketId, upload.id)).toBeNull()
      expect(await catalog.listParts(upload.id, 0, 9)).toEqual([])
      expect((await catalog.removableBlobs(ids)).toSorted()).toEqual(ids)
      expect(await catalog.putPart(bucketId, upload.id, newPart(3), later)).toBeNull()
      expect(await catalog.bucket(bucketId)).toMatchObject({ reservedItems: 0, reservedBytes: 0 })
    })

    test('MU4 expired uploads are found in parts, and removed only if they still are expired', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const uploads = [20, 10, 10, 30].map((expiresAt) => newMultipart({ expiresAt }))
      for (const upload of uploads) await catalog.createMultipart(bucketId, upload)
      const [first, second] = [
        await catalog.expiredMultiparts(20, 2),
        await catalog.expiredMultiparts(20, 2, (await catalog.expiredMultiparts(20, 2)).at(-1)),
      ]
      const found = [...first, ...second].map(({ id }) => id)
      expect(found.toSorted()).toEqual(
        uploads
          .slice(0, 3)
          .map(({ id }) => id)
          .toSorted(),
      )
      for (const { id, bucketId } of first) await catalog.putPart(bucketId, id, newPart(1), 40)
      for (const id of found) await catalog.removeMultipart(bucketId, id, 20)
      expect((await catalog.expiredMultiparts(50, 9)).map(({ expiresAt }) => expiresAt)).toEqual([30, 40, 40])
    })

    test('MU5 uploads are listed by the bytes of their keys and by their creation', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const keys = ['b', 'a/1', 'a/2', 'a/', '\u{1f600}', '\uffff', 'a/1', 'a0', 'c/x/1', 'c/x/2', 'c/y', 'a']
      for (const [index, key] of keys.entries())
        await catalog.createMultipart(bucketId, newMultipart({ id: newMultipartId(now + index), key }))
      await catalog.createMultipart(bucketId, newMultipart({ key: 'expired', expiresAt: now }))
      await catalog.createMultipart(await newBucket(catalog, 'other'), newMultipart({ key: 'a/9' }))
      const list = async (
        prefix: string,
        delimiter: string | null = null,
        after: MultipartPlace | null = null,
        limit = 100,
      ) => catalog.listMultiparts(bucketId, { prefix, delimiter, after, limit, limitedBy: null }, now)
      const ordered = keys.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))
      const all = await list('')
      expect(all.map(textOf)).toEqual(ordered)
      expect((await list('a/')).map(textOf)).toEqual(['a/', 'a/1', 'a/1', 'a/2'])
      expect((await list('', '/')).map(textOf)).toEqual(['a', 'a/*', 'a0', 'b', 'c/*', '\uffff', '\u{1f600}'])
      expect((await list('c/', '/')).map(textOf)).toEqual(['c/x/*', 'c/y'])
      expect((await list('a/1', 'absent')).map(textOf)).toEqual(['a/1', 'a/1'])
      // One entry at a time.
      for (const delimiter of [null, '/', '/x']) {
        const whole = (await list('', delimiter)).map(textOf)
        const some: string[] = []
        for (let after: MultipartPlace | null = null; ; ) {
          const [entry]: MultipartEntry[] = await list('', delimiter, after, 1)
          if (entry === undefined) break
          some.push(textOf(entry))
          after =
            'upload' in entry
              ? { key: entry.upload.key, id: entry.upload.id, isPrefix: false }
              : { key: entry.prefix, id: null, isPrefix: true }
        }
        expect(some).toEqual(whole)
      }
      const afterKey = await list('', null, { key: 'a/1', id: null, isPrefix: false })
      expect(afterKey.map(textOf)).toEqual(ordered.slice(ordered.lastIndexOf('a/1') + 1))
    })

    test('MU6 a deleted bucket loses its uploads, and their blobs', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const ids: ItemId[] = []
      for (let count = 0; count < 5; count++) {
        const upload = newMultipart()
        await catalog.createMultipart(bucketId, upload)
        for (const part of [newPart(1), newPart(2)]) {
          ids.push(part.itemId)
          await catalog.putPart(bucketId, upload.id, part, later)
        }
      }
      expect(await catalog.deleteBucket('b', false, now, { owner: 'o', lifetime: 1 })).toBe(bucketId)
      const tombstones: ItemId[] = []
      for (let isDeleted = false; !isDeleted; ) {
        const chunk = await catalog.deleteBucketChunk(bucketId, 3, now)
        tombstones.push(...chunk.tombstones)
        isDeleted = chunk.isDeleted
      }
      expect(tombstones.toSorted()).toEqual(ids.toSorted())
    })

    test('MU7 a part whose id was taken by a check, or by an item, is refused', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const upload = newMultipart()
      await catalog.createMultipart(bucketId, upload)
      const part = newPart(1)
      await catalog.addIntents([part.itemId], -1)
      expect(await catalog.retireIntents([part.itemId])).toEqual([part.itemId])
      await expect(catalog.putPart(bucketId, upload.id, part, later)).rejects.toThrow('set aside')
      expect(await catalog.listParts(upload.id, 0, 9)).toEqual([])
      // The bytes of parts are not those of items.
      const stored = newPart(2)
      await catalog.putPart(bucketId, upload.id, stored, later)
      expect(await catalog.findUnreferenced([stored.itemId])).toEqual([])
      expect(await catalog.removableBlobs([stored.itemId])).toEqual([])
    })
  })
}
