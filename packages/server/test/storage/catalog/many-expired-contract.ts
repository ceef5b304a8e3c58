import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { ItemId } from '../../../src/core/ids.ts'
import { listState, maxExpired } from '../../../src/storage/catalog/buckets.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import { placeOf } from '../../../src/storage/catalog/lists/item-lists.ts'
import type { BucketId, ItemPlace, ItemSelection } from '../../../src/storage/catalog/records.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { hashOf, inBlobStore, newBucket, newItem, newItems } from './samples.ts'

const hour = 3_600_000

interface Modelled {
  readonly id: ItemId
  readonly expiresAt: number
  isTrashed: boolean
}

/** Which items of an upload expire: all at once, every second one, or at any of some hours. */
const patterns = {
  all: () => 2,
  none: () => null,
  some: (index: number) => (index % 2 === 0 ? 1 : null),
  any: (index: number) => 1 + ((index * 7) % 4),
  past: () => -5,
} satisfies Record<string, (index: number) => number | null>

const step = fc.record({
  kind: fc.constantFrom('add', 'add', 'wait', 'sweep', 'sweep', 'remove', 'restore', 'edit'),
  pattern: fc.constantFrom(...(Object.keys(patterns) as (keyof typeof patterns)[])),
  count: fc.integer({ min: 1, max: 350 }),
  nth: fc.nat(),
})

/** All items of a list by cursor, which may end early at any place. */
async function readAll(catalog: Catalog, selection: ItemSelection): Promise<ItemId[]> {
  const ids: ItemId[] = []
  for (let after: ItemPlace | null = null; ; ) {
    const { rows, examined } = await catalog.items(selection, after, 70)
    ids.push(...rows.map(({ item }) => item.id))
    const last = rows.at(-1)
    if (examined === null && rows.length < 70) return ids
    after = examined ?? (last ? placeOf(selection, last) : null)
  }
}

const everything = { order: 'oldest', kind: null, from: null, to: null, name: null } as const

/** Every read of the bucket shows the items of the model, with their counts and one state. */
async function expectReads(
  catalog: Catalog,
  bucketId: BucketId,
  name: string,
  model: readonly Modelled[],
  nth: number,
): Promise<void> {
  const listed = model.filter(({ isTrashed }) => !isTrashed).map(({ id }) => id)
  const trashed = model.filter(({ isTrashed }) => isTrashed)
  const total = listed.length
  const grant = (await catalog.findGrant(hashOf(name))) ?? expect.unreachable()
  expect(grant.total).toBe(total)
  const state = listState(grant)
  const last = Math.max(1, Math.ceil(total / 10))
  for (const page of [1, 1 + (nth % last), last, last + 1]) {
    const read = await catalog.page(bucketId, page)
    expect(read.rows.map(({ id }) => id)).toEqual(listed.slice((page - 1) * 10, page * 10))
    expect([read.total, listState(read)]).toEqual([total, state])
  }
  const first = nth % (total + 5)
  for (const order of ['oldest', 'newest'] as const) {
    const all = order === 'oldest' ? listed : listed.toReversed()
    const read = await catalog.itemsAt(bucketId, order, first, 33)
    expect(read.items.map(({ id }) => id)).toEqual(all.slice(first, first + 33))
    expect([read.total, listState(read)]).toEqual([total, state])
  }
  expect(await readAll(catalog, { ...everything, bucketId })).toEqual(listed)
  expect(await readAll(catalog, { ...everything, bucketId, name: ['harbour'] })).toEqual(listed)
  const counts = { items: total, bytes: model.length * 1_000 }
  expect(await catalog.bucket(bucketId)).toMatchObject(counts)
  expect((await catalog.listBuckets()).find((bucket) => bucket.name === name)).toMatchObject(counts)
  const trash = { items: trashed.length, bytes: trashed.length * 1_000 }
  expect(await catalog.findBucketWithTrash(bucketId)).toMatchObject({ ...counts, trash })
  const { rows } = await catalog.listTrash(bucketId, null, 5_000)
  expect(new Set(rows.map(({ item }) => item.id))).toEqual(new Set(trashed.map(({ id }) => id)))
}

/** Many items that expire at once, on every catalog engine. */
export function describeManyExpired(engine: string, fresh: Fresh): void {
  describe(`${engine}: many expired items`, () => {
    test('E2, E3 while many expired items are counted and removed in steps, every read equals that of an array', async () => {
      vi.useFakeTimers({ toFake: ['Date'], now: 1_900_000_000_000 })
      onTestFinished(() => void vi.useRealTimers())
      const catalog = await openOne(fresh)
      let run = 0
      const property = fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 14 }), async (steps) => {
        const name = `run ${run++}`
        const bucketId = await newBucket(catalog, name)
        await catalog.setBucket(name, { trashDays: 30 })
        let model: Modelled[] = []
        let stored = 0
        for (const { kind, pattern, count, nth } of steps) {
          if (kind === 'wait') vi.setSystemTime(Date.now() + (1 + (nth % 3)) * hour)
          const now = Date.now()
          if (kind === 'add') {
            const items = newItems(count).map((item, index) => {
              const hours = patterns[pattern](index)
              return newItem({ ...item, expiresAt: hours === null ? null : now + hours * hour })
            })
            await catalog.addItems(bucketId, inBlobStore(items))
            stored += count
            for (const { id, expiresAt } of items)
              model.push({ id, expiresAt: expiresAt ?? Infinity, isTrashed: false })
          }
          model = model.filter(({ expiresAt }) => expiresAt > now)
          const listed = model.filter(({ isTrashed }) => !isTrashed)
          const chosen = listed.slice(nth % (listed.length + 1)).slice(0, count)
          if (kind === 'sweep') {
            const { ids, counted, waiting } = await catalog.expireItems(bucketId)
            stored -= ids.length
            // The rest is counted, unless all were removed.
            expect(ids.length).toBe(Math.min(100, stored + ids.length - model.length))
            if (ids.length === 100) expect(waiting).toBe(stored - model.length)
            expect(counted).toBeLessThanOrEqual(waiting)
          } else if (kind === 'remove') {
            const ids = chosen.map(({ id }) => id)
            expect(new Set((await catalog.removeItems(bucketId, ids)).ids)).toEqual(new Set(ids))
            for (const item of chosen) item.isTrashed = true
          } else if (kind === 'restore') {
            const back = model.filter(({ isTrashed }) => isTrashed).slice(0, count)
            const ids = back.map(({ id }) => id)
            expect(await catalog.restoreItems(bucketId, ids)).toEqual(ids)
            for (const item of back) item.isTrashed = false
          } else if (kind === 'edit' && chosen[0]) {
            await catalog.editItem(bucketId, chosen[0].id, { caption: `${now} ${nth}` }, null)
          }
          await expectReads(catalog, bucketId, name, model, nth)
        }
        for (let left = 100; left === 100; ) left = (await catalog.expireItems(bucketId)).ids.length
        await expectReads(catalog, bucketId, name, model, 0)
      })
      await fc.assert(property, { numRuns: engine.includes('direct') ? 12 : 4 })
    })

    test('E2 more items have expired than a read passes by: lists fail until steps have counted them, and omit them then', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { maxItems: maxExpired * 3 + 10 })
      const expired = newItems(maxExpired * 3).map((item) => ({ ...item, expiresAt: 1 }))
      await catalog.addItems(bucketId, inBlobStore(expired))
      const lasting = newItems(10)
      await catalog.addItems(bucketId, inBlobStore(lasting))
      const grant = async () => (await other.findGrant(hashOf('b'))) ?? expect.unreachable()
      const many = await grant()
      expect(() => listState(many)).toThrow(expect.objectContaining({ code: 'catalog-busy' }))
      let steps = 0
      for (; (await catalog.expireItems(bucketId)).counted > 0; steps += 1);
      expect(steps).toBe(3)
      const left = maxExpired * 3 - 400
      expect(await grant()).toMatchObject({ total: 10, expired: left })
      expect(await catalog.statistics()).toMatchObject({ expiredItems: left })
      const ids = lasting.map(({ id }) => id)
      expect((await other.page(bucketId, 1)).rows.map(({ id }) => id)).toEqual(ids)
      expect(await readAll(other, { ...everything, bucketId })).toEqual(ids)
      expect(await readAll(other, { ...everything, bucketId, order: 'newest' })).toEqual(ids.toReversed())
      // Their quota is free before they are removed.
      const more = newItems(maxExpired)
      await other.addItems(bucketId, inBlobStore(more))
      expect((await other.page(bucketId, 2)).rows.map(({ id }) => id)).toEqual(
        more.slice(0, 10).map(({ id }) => id),
      )
      const [gone] = expired
      if (!gone) throw new Error('no item')
      expect((await other.removeItems(bucketId, [expired.at(-1)?.id ?? gone.id])).ids).toEqual([])
      await catalog.deleteBucketChunk(bucketId, 500, 1)
      expect(await other.bucket(bucketId)).toMatchObject({ items: maxExpired + 10 })
    })

    test('E2, Z2 more items of a trash have expired than a read passes by: its list ends early, and commands show exact figures', async () => {
      vi.useFakeTimers({ toFake: ['Date'], now: 1_900_000_000_000 })
      onTestFinished(() => void vi.useRealTimers())
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { trashDays: 30 })
      const items = newItems(maxExpired + 104).map((item, index) => {
        const isLasting = index === 3 || index > maxExpired + 100
        return { ...item, expiresAt: isLasting ? null : Date.now() + hour }
      })
      await catalog.addItems(bucketId, inBlobStore(items))
      await catalog.removeItems(
        bucketId,
        items.map(({ id }) => id),
      )
      const lasting = items.flatMap(({ id, expiresAt }) => (expiresAt === null ? [id] : [])).toReversed()
      vi.setSystemTime(Date.now() + 2 * hour)
      const parts: ItemId[][] = []
      for (let after: number | null = null; ; ) {
        const { rows, examined } = await catalog.listTrash(bucketId, after, 50)
        parts.push(rows.map(({ item }) => item.id))
        after = examined
        if (after === null) break
      }
      expect(parts).toEqual([lasting.slice(0, 3), lasting.slice(3)])
      expect((await catalog.listTrash(bucketId, null, 2)).rows.map(({ item }) => item.id)).toEqual(
        lasting.slice(0, 2),
      )
      const exact = { items: 0, bytes: 4_000, trash: { items: 4, bytes: 4_000 } }
      expect(await catalog.listBuckets()).toMatchObject([exact])
      await expect(catalog.findBucketWithTrash(bucketId)).rejects.toMatchObject({ code: 'catalog-busy' })
      while ((await catalog.expireItems(bucketId)).counted > 0);
      expect(await catalog.findBucketWithTrash(bucketId)).toMatchObject(exact)
      expect(await catalog.listBuckets()).toMatchObject([exact])
    })
  })
}
