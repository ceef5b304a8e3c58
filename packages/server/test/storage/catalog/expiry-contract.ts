import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { ItemId } from '../../../src/core/ids.ts'
import { service } from '../../../src/core/token-rules.ts'
import { listState, maxExpired } from '../../../src/storage/catalog/buckets.ts'
import type { BucketId, ItemSelection } from '../../../src/storage/catalog/records.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import {
  allPages,
  hashOf,
  inBlobStore,
  newBucket,
  newItem,
  newItems,
  newUpload,
  withBytes,
} from './samples.ts'

const hour = 3_600_000

/** An item of the model, which is listed or in the trash. */
interface Modelled {
  readonly id: ItemId
  readonly expiresAt: number
  trashedUntil: number | null
}

/**
 * Whole hours, so that items expire at the moment of a step too. `nth` chooses the item. Before two of three steps, expired items are
 * removed, as before a request that writes; before the others they stay.
 */
const step = fc.record({
  kind: fc.constantFrom('add', 'wait', 'edit', 'remove', 'restore', 'sweep'),
  hours: fc.option(fc.integer({ min: 1, max: 5 }), { freq: 2 }),
  nth: fc.nat(),
})

/** Items that expire, on every catalog engine. */
export function describeExpiry(engine: string, fresh: Fresh): void {
  describe(`${engine}: expiry`, () => {
    test('E2, E3 expired items are not served, counted or listed before they are removed, and their removal is another state', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const now = Date.now()
      expect(await catalog.findGrant(hashOf('b'))).toMatchObject({ nextExpiry: null, itemDays: null })
      const [gone, later, lasting] = [
        newItem({ expiresAt: now - 1 }),
        newItem({ expiresAt: now + hour }),
        newItem(),
      ]
      await catalog.addItems(bucketId, [withBytes(lasting), withBytes(later)])
      expect(await other.findGrant(hashOf('b'))).toMatchObject({ nextExpiry: now + hour })
      await catalog.addItems(bucketId, [withBytes(gone)])
      const before = await other.findGrant(hashOf('b'))
      expect(before).toMatchObject({ nextExpiry: now - 1, total: 2, expired: 1 })
      expect(await other.bucket(bucketId)).toMatchObject({ items: 2, bytes: 2_000 })
      expect(await other.item(gone.id)).toBeNull()
      expect(await other.item(later.id)).toMatchObject({ expiresAt: now + hour })
      expect(await other.servability([gone.id, later.id, lasting.id])).toEqual([
        'not',
        'servable',
        'servable',
      ])
      expect(await other.expiringBuckets(now)).toEqual([bucketId])
      const rest = { counted: 0, waiting: 0 }
      expect(await other.expireItems(bucketId)).toEqual({ ids: [gone.id], tombstones: [gone.id], ...rest })
      expect(await other.expireItems(bucketId)).toEqual({ ids: [], tombstones: [], ...rest })
      const after = await catalog.findGrant(hashOf('b'))
      expect(after).toMatchObject({ nextExpiry: now + hour, total: 2, expired: 0 })
      expect(after?.revision).toBeGreaterThan(before?.revision ?? 0)
      expect(await allPages(catalog, bucketId)).toEqual([lasting.id, later.id])
      expect(await catalog.bucket(bucketId)).toMatchObject({ items: 2, bytes: 2_000 })
      expect(await catalog.expiringBuckets(now)).toEqual([])
      expect((await catalog.expireItems(bucketId, now + hour)).ids).toEqual([later.id])
      expect(await catalog.findGrant(hashOf('b'))).toMatchObject({ nextExpiry: null, total: 1 })
    })

    test('E2 the lists of a bucket fail while too many of its expired items are not removed', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const expired = inBlobStore(newItems(maxExpired + 2).map((item) => ({ ...item, expiresAt: 1 })))
      await catalog.addItems(bucketId, expired.slice(0, maxExpired))
      const few = (await catalog.findGrant(hashOf('b'))) ?? expect.unreachable()
      expect(few).toMatchObject({ total: 0, expired: maxExpired })
      expect(listState(few)).toBe(`${few.revision}-${maxExpired}`)
      expect(await catalog.page(bucketId, 1)).toMatchObject({ total: 0, expired: maxExpired, rows: [] })
      expect(await catalog.bucket(bucketId)).toMatchObject({ items: 0, bytes: 0 })
      await catalog.addItems(bucketId, expired.slice(maxExpired))
      const many = (await catalog.findGrant(hashOf('b'))) ?? expect.unreachable()
      expect(() => listState(many)).toThrow(expect.objectContaining({ code: 'catalog-busy' }))
      // Commands show the numbers also where no service counts them.
      expect(await catalog.listBuckets()).toMatchObject([{ name: 'b', items: 0, bytes: 0 }])
    })

    test('E2 an item that was servable is not when it expires, although nothing was committed in between', async () => {
      vi.useFakeTimers({ toFake: ['Date'], now: 1_900_000_000_000 })
      onTestFinished(() => void vi.useRealTimers())
      const catalog = await openOne(fresh)
      const items = [newItem({ expiresAt: Date.now() + hour }), newItem()]
      await catalog.addItems(await newBucket(catalog, 'b'), items.map(withBytes))
      const states = () => catalog.servability(items.map(({ id }) => id))
      expect(await states()).toEqual(['servable', 'servable'])
      vi.setSystemTime(Date.now() + hour - 1)
      expect(await states()).toEqual(['servable', 'servable'])
      vi.setSystemTime(Date.now() + 1)
      expect(await states()).toEqual(['not', 'servable'])
    })

    test('E2, E3 after any uploads, edits, deletions, restores, sweeps and moves of the clock, every read equals that of an array', async () => {
      vi.useFakeTimers({ toFake: ['Date'], now: 1_900_000_000_000 })
      onTestFinished(() => void vi.useRealTimers())
      const catalog = await openOne(fresh)
      let run = 0
      const readAll = async (selection: ItemSelection) => {
        const { rows, ...state } = await catalog.items(selection, null, 99)
        return { ids: rows.map(({ item }) => item.id), state: listState(state) }
      }
      /** Every read of the bucket shows the items of the model, with their counts and one state. */
      async function expectReads(
        bucketId: BucketId,
        name: string,
        model: readonly Modelled[],
      ): Promise<void> {
        const now = Date.now()
        const listed = model.filter(({ trashedUntil }) => trashedUntil === null).map(({ id }) => id)
        const grant = (await catalog.findGrant(hashOf(name))) ?? expect.unreachable()
        expect(grant.total).toBe(listed.length)
        expect(await allPages(catalog, bucketId)).toEqual(listed)
        expect(listState(await catalog.page(bucketId, 1))).toBe(listState(grant))
        const expected = { ids: listed, state: listState(grant) }
        const all = { bucketId, order: 'oldest', kind: null, from: null, to: null, name: null } as const
        expect(await readAll(all)).toEqual(expected)
        expect(await readAll({ ...all, name: ['harbour'] })).toEqual(expected)
        expect(await readAll({ ...all, order: 'newest' })).toEqual({ ...expected, ids: listed.toReversed() })
        const ofKind = await readAll({ ...all, from: 0 })
        expect({ ...ofKind, ids: ofKind.ids.toSorted() }).toEqual({ ...expected, ids: listed.toSorted() })
        const counts = await catalog.bucket(bucketId)
        expect(counts).toMatchObject({ items: listed.length, bytes: model.length * 1_000 })
        const trashed = model.filter(({ trashedUntil }) => trashedUntil !== null)
        const trashState = { items: trashed.length, bytes: trashed.length * 1_000 }
        expect(await catalog.findBucketWithTrash(bucketId)).toMatchObject({ trash: trashState })
        const shown = trashed.filter(({ trashedUntil }) => (trashedUntil ?? 0) > now)
        const { rows } = await catalog.listTrash(bucketId, null, 99)
        expect(new Set(rows.map(({ item, expiresAt }) => `${item.id} ${expiresAt}`))).toEqual(
          new Set(shown.map(({ id, trashedUntil }) => `${id} ${trashedUntil}`)),
        )
        expect(await catalog.servability(model.map(({ id }) => id))).toEqual(
          model.map(({ trashedUntil }) => (trashedUntil === null ? 'servable' : 'not')),
        )
      }
      const property = fc.asyncProperty(
        fc.constantFrom(true, true, false),
        fc.array(step, { minLength: 15, maxLength: 30 }),
        async (hasTrash, steps) => {
          const name = `run ${run++}`
          const bucketId = await newBucket(catalog, name)
          await catalog.setBucket(name, { trashDays: hasTrash ? 1 : 0 })
          let model: Modelled[] = []
          /** Items that have expired and are not removed. */
          let stored: Modelled[] = []
          let listed: Modelled[] = []
          for (const { kind, hours, nth } of steps) {
            if (kind === 'wait') vi.setSystemTime(Date.now() + (hours ?? 1) * hour)
            const now = Date.now()
            const due = model.filter((item) => item.expiresAt <= now)
            model = model.filter((item) => !due.includes(item))
            stored.push(...due)
            if (kind === 'wait') await expectReads(bucketId, name, model)
            if (nth % 3 > 0) {
              const { nextExpiry } = (await catalog.findGrant(hashOf(name))) ?? expect.unreachable()
              if (nextExpiry === null || nextExpiry > now) expect(stored).toEqual([])
              else
                expect(new Set((await catalog.expireItems(bucketId)).ids)).toEqual(
                  new Set(stored.map(({ id }) => id)),
                )
              stored = []
            }
            listed = model.filter(({ trashedUntil }) => trashedUntil === null)
            const chosen = listed[nth % listed.length]
            const trashed = model.filter(({ trashedUntil }) => trashedUntil !== null)
            const inTrash = trashed[nth % trashed.length]
            if (kind === 'add') {
              const expiresAt = hours === null ? null : now + hours * hour
              const items = [newItem({ expiresAt })]
              await catalog.addItems(bucketId, items.map(withBytes))
              for (const item of items)
                model.push({ id: item.id, expiresAt: item.expiresAt ?? Infinity, trashedUntil: null })
            } else if (kind === 'edit' && chosen) {
              await catalog.editItem(bucketId, chosen.id, { caption: `${now} ${nth}` }, null)
            } else if (kind === 'remove' && chosen) {
              await catalog.removeItems(bucketId, [chosen.id])
              model = hasTrash ? model : model.filter((item) => item !== chosen)
              chosen.trashedUntil = Math.min(now + 24 * hour, chosen.expiresAt)
            } else if (kind === 'restore' && inTrash) {
              const isLate = (inTrash.trashedUntil ?? 0) <= now
              expect(await catalog.restoreItems(bucketId, [inTrash.id])).toEqual(isLate ? [] : [inTrash.id])
              if (!isLate) inTrash.trashedUntil = null
            } else if (kind === 'sweep') {
              const late = [...trashed, ...stored].filter(
                ({ trashedUntil }) => (trashedUntil ?? Infinity) <= now,
              )
              const found = await catalog.expiredTrash(bucketId, now, 99)
              expect(new Set(found)).toEqual(new Set(late.map(({ id }) => id)))
              await catalog.purgeItems(
                bucketId,
                late.map(({ id }) => id),
              )
              model = model.filter((item) => !late.includes(item))
              stored = stored.filter((item) => !late.includes(item))
            }
            await expectReads(bucketId, name, model)
          }
        },
      )
      // Each run takes about 300 reads, each of which is a round trip to PostgreSQL.
      await fc.assert(property, { numRuns: engine.includes('direct') ? 15 : 2 })
    })

    test('E3 an item in the trash leaves it when it expires, and one that is restored keeps its expiry', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { trashDays: 30 })
      const now = Date.now()
      const items = [newItem({ expiresAt: now + hour }), newItem({ expiresAt: now + 2 * hour }), newItem()]
      const [first, second, lasting] = items.map(({ id }) => id)
      if (!first || !second || !lasting) throw new Error('no items')
      await catalog.addItems(bucketId, items.map(withBytes))
      await catalog.removeItems(bucketId, [first, second, lasting], service, now)
      const { rows: trashed } = await catalog.listTrash(bucketId, null, 9, now)
      expect(trashed.map(({ expiresAt }) => expiresAt - now).toReversed()).toEqual([
        hour,
        2 * hour,
        30 * 24 * hour,
      ])
      expect(
        (await catalog.listTrash(bucketId, null, 9, now + hour)).rows.map(({ item }) => item.id),
      ).not.toContain(first)
      expect(await catalog.restoreItems(bucketId, [first, second], service, now + hour)).toEqual([second])
      expect(await catalog.findGrant(hashOf('b'))).toMatchObject({ nextExpiry: now + hour, total: 1 })
      expect(await catalog.expiredTrash(bucketId, now + hour, 9)).toEqual([first])
      expect((await catalog.expireItems(bucketId, now + 2 * hour)).ids).toEqual([second, first])
      expect(await catalog.findGrant(hashOf('b'))).toMatchObject({ nextExpiry: null, total: 0 })
      expect(await catalog.bucket(bucketId)).toMatchObject({ bytes: 1_000 })
      expect(await catalog.findBucketWithTrash(bucketId)).toMatchObject({ trash: { items: 1, bytes: 1_000 } })
    })

    test('E1, E3 many items expire in steps, and a resumable upload and the settings have an expiry', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { itemDays: 7 })
      expect(await catalog.findGrant(hashOf('b'))).toMatchObject({ itemDays: 7 })
      const now = Date.now()
      await catalog.addItems(
        bucketId,
        newItems(700).map((item, index) =>
          withBytes({ ...item, expiresAt: index % 2 === 0 ? now : now + hour }),
        ),
      )
      const upload = newUpload(bucketId, { length: 1_000 })
      await catalog.createUpload(upload)
      const item = newItem({ id: upload.itemId, size: 1_000, expiresAt: now })
      expect(await catalog.finishUpload(upload.id, { ...item, bytes: null }, 5)).toBe(true)
      const expireAll = async (at: number) => {
        const steps = [(await catalog.expireItems(bucketId, at)).ids.length]
        while (steps.at(-1) === 100) steps.push((await catalog.expireItems(bucketId, at)).ids.length)
        return steps
      }
      expect(await expireAll(now)).toEqual([100, 100, 100, 51])
      expect(await expireAll(now + hour)).toEqual([100, 100, 100, 50])
      expect(await catalog.bucket(bucketId)).toMatchObject({ items: 0, bytes: 0, itemDays: 7 })
    })
  })
}
