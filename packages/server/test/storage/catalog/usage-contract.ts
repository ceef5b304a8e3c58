import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { seededRandom } from '../../../../../test/harness/random.ts'
import type { ItemId } from '../../../src/core/ids.ts'
import { dayOf, startOfDay } from '../../../src/core/times.ts'
import { keptDays } from '../../../src/core/usage-queries.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import type { BucketId, NewItem, TokenId } from '../../../src/storage/catalog/records.ts'
import {
  type BucketUsage,
  type CountedRequests,
  type DayUsage,
  noUsage,
  type UsageCounts,
} from '../../../src/storage/catalog/usage.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { hashOf, inBlobStore, newItem, newToken, newUpload, withBytes } from './samples.ts'

const day = 86_400_000
/** The first moment of a day. */
const start = startOfDay(20_700)

function fakeClock(time = start): void {
  vi.useFakeTimers({ toFake: ['Date'], now: time })
  onTestFinished(() => void vi.useRealTimers())
}

/** A bucket of this moment, with a token of the same name. */
async function newBucket(catalog: Catalog, name: string): Promise<BucketId> {
  await catalog.addToken(newToken(name, { bucket: name, createdAt: Date.now() }))
  const bucket = await catalog.findBucketNamed(name)
  if (bucket === null) throw new Error('a bucket that was just created is unknown')
  return bucket.id
}

const counted = (bucketId: BucketId, fields: Partial<CountedRequests> = {}): CountedRequests => ({
  ...{ bucketId, day: dayOf(Date.now()), downloadedBytes: 0 },
  ...{ listRequests: 0, downloadRequests: 0, uploadRequests: 0, otherRequests: 0 },
  ...fields,
})

/** What the changes of each day have added to a bucket. */
class Model {
  readonly live = new Map<ItemId, NewItem>()
  readonly trash = new Map<ItemId, NewItem>()
  readonly days = new Map<number, UsageCounts>()

  count(change: Partial<UsageCounts>, at = dayOf(Date.now())): void {
    const counts = { ...(this.days.get(at) ?? noUsage) }
    for (const [name, value] of Object.entries(change)) counts[name as keyof UsageCounts] += value
    this.days.set(at, counts)
  }

  add(items: readonly NewItem[]): void {
    for (const item of items) this.live.set(item.id, item)
    this.count({ addedItems: items.length, addedBytes: bytesOf(items) })
  }

  /** Moves items to the trash. */
  trashItems(ids: readonly ItemId[]): void {
    for (const item of take(this.live, ids)) this.trash.set(item.id, item)
    this.count({ removedItems: ids.length })
  }

  restore(ids: readonly ItemId[]): void {
    for (const item of take(this.trash, ids)) this.live.set(item.id, item)
    this.count({ addedItems: ids.length })
  }

  remove(ids: readonly ItemId[]): void {
    this.count({ removedItems: ids.length, removedBytes: bytesOf(take(this.live, ids)) })
  }

  purge(ids: readonly ItemId[]): void {
    this.count({ removedBytes: bytesOf(take(this.trash, ids)) })
  }

  /** Days after today count as today. Items and bytes at the end of a day are those of now without later changes. */
  usage(from: number, to: number): DayUsage[] {
    const today = dayOf(Date.now())
    const merged = new Model()
    for (const [at, counts] of this.days) merged.count(counts, Math.min(at, today))
    const [items, bytes] = [this.live.size, bytesOf([...this.live.values(), ...this.trash.values()])]
    return Array.from({ length: to - from + 1 }, (_, index) => {
      const at = from + index
      const later = [...merged.days].filter(([other]) => other > at).map(([, counts]) => counts)
      return {
        day: at,
        items: later.reduce((sum, counts) => sum - counts.addedItems + counts.removedItems, items),
        bytes: later.reduce((sum, counts) => sum - counts.addedBytes + counts.removedBytes, bytes),
        ...(merged.days.get(at) ?? noUsage),
      }
    })
  }
}

const bytesOf = (items: readonly NewItem[]): number => items.reduce((sum, { size }) => sum + size, 0)

/** Removes these from a map. */
const take = (items: Map<ItemId, NewItem>, ids: readonly ItemId[]): NewItem[] =>
  ids.map((id) => {
    const item = items.get(id)
    if (item === undefined) throw new Error(`${id} is not there`)
    items.delete(id)
    return item
  })

interface Scene {
  readonly catalog: Catalog
  readonly id: BucketId
  readonly name: string
  readonly model: Model
  readonly random: (limit: number) => number
}

const some = <T>(random: Scene['random'], from: Iterable<T>, limit = 3): T[] => {
  const all = [...from]
  return Array.from({ length: Math.min(all.length, 1 + random(limit)) }, () =>
    all.splice(random(all.length), 1),
  ).flat()
}

const randomItems = (random: Scene['random'], fields: Partial<NewItem> = {}) =>
  Array.from({ length: 1 + random(3) }, () => newItem({ size: random(5_000), ...fields }))

const trashDaysOf = async ({ catalog, name }: Scene) => (await catalog.findBucketNamed(name))?.trashDays ?? 0

/** Each changes a bucket in one way, and its model as the catalog says it did. */
const operations: readonly ((scene: Scene, step: number) => Promise<void>)[] = [
  async function upload({ catalog, id, model, random }) {
    const items = randomItems(random)
    await catalog.addItems(id, random(2) === 0 ? inBlobStore(items) : items.map(withBytes))
    model.add(items)
  },
  async function uploadExpiring({ catalog, id, model, random }) {
    const items = randomItems(random, { expiresAt: Date.now() + (1 + random(3)) * day })
    await catalog.addItems(id, inBlobStore(items))
    model.add(items)
  },
  async function uploadOnce({ catalog, id, name, model, random }, step) {
    const items = randomItems(random)
    const request = {
      ...{ tokenId: name as TokenId, key: `${step}`, fingerprint: hashOf(`${step}`) },
      ...{ now: Date.now(), expiresAt: Date.now() + day },
    }
    await catalog.addItemsOnce(id, inBlobStore(items), request)
    model.add(items)
    // The repetition stores nothing.
    await catalog.addItemsOnce(id, inBlobStore(randomItems(random)), request)
  },
  async function resume({ catalog, id, model, random }) {
    const [item] = randomItems(random)
    if (item === undefined) return
    const upload = newUpload(id, { length: item.size, itemId: item.id })
    await catalog.createUpload(upload)
    await catalog.moveUpload(upload.id, 0, item.size, Date.now() + day)
    expect(await catalog.finishUpload(upload.id, withBytes(item), Date.now() + day)).toBe(true)
    model.add([item])
  },
  async function remove(scene) {
    const { catalog, id, model, random } = scene
    const days = await trashDaysOf(scene)
    const { ids } = await catalog.removeItems(id, some(random, model.live.keys()), undefined, Date.now())
    if (days === 0) model.remove(ids)
    else model.trashItems(ids)
  },
  async function restore({ catalog, id, model, random }) {
    model.restore(await catalog.restoreItems(id, some(random, model.trash.keys()), undefined, Date.now()))
  },
  async function purge({ catalog, id, model, random }) {
    model.purge((await catalog.purgeItems(id, some(random, model.trash.keys()))).ids)
  },
  async function expire({ catalog, id, model }) {
    const { ids } = await catalog.expireItems(id, Date.now())
    model.remove(ids.filter((id) => model.live.has(id)))
    model.purge(ids.filter((id) => model.trash.has(id)))
  },
  async function setTrash({ catalog, name, random }) {
    await catalog.setBucket(name, { trashDays: random(2) * 7 })
  },
  async function count({ catalog, id, model, random }) {
    const more = { downloadedBytes: random(1_000), listRequests: random(9), otherRequests: random(3) }
    await catalog.addUsage([counted(id, more)])
    model.count(more)
  },
  async function countYesterday({ catalog, id, model, random }) {
    const more = { downloadRequests: random(9), uploadRequests: random(5) }
    const yesterday = dayOf(Date.now()) - 1
    await catalog.addUsage([counted(id, { ...more, day: yesterday })])
    model.count(more, yesterday)
  },
  async function wait({ random }) {
    vi.setSystemTime(Date.now() + random(2 * day))
  },
  async function moveClock({ random }) {
    // It ran ahead, is set back, or is corrected.
    vi.setSystemTime(start + random(30) * day + random(day))
  },
]

const listAll = async (catalog: Catalog, at: number, limit: number): Promise<BucketUsage[]> => {
  const found: BucketUsage[] = []
  for (;;) {
    const page = await catalog.listUsage(at, found.at(-1) ?? null, limit)
    found.push(...page)
    if (page.length < limit) return found
  }
}

/** Usage by day, of every catalog engine. */
export function describeUsage(engine: string, fresh: Fresh): void {
  describe(`${engine}: usage`, () => {
    test('US1, US2, US3 items, bytes, additions and removals of each day are those of the changes, with any clock', async () => {
      fakeClock()
      const { catalog, other } = await openTwo(fresh)
      const random = seededRandom()
      const names = ['a', 'b', 'c']
      const scenes = new Map<string, Model>()
      const ids = new Map<string, BucketId>()
      for (const name of names) {
        ids.set(name, await newBucket(catalog, name))
        scenes.set(name, new Model())
      }
      for (let step = 0; step < 250; step += 1) {
        const name = names[random(names.length)] ?? 'a'
        const [model, id] = [scenes.get(name), ids.get(name)]
        const operation = operations[random(operations.length)]
        if (!model || !id || !operation) continue
        const scene = { catalog: random(2) === 0 ? catalog : other, id, name, model, random }
        await operation(scene, step)
        if (step % 10 !== 0) continue
        const today = dayOf(Date.now())
        const from = today - random(40)
        const to = from + random(today - from + 1)
        expect(await other.findUsage(id, from, to), `step ${step}`).toEqual(model.usage(from, to))
        const expected = names.map((name) => ({
          ...{ id: ids.get(name), name, deletedAt: null },
          usage: scenes.get(name)?.usage(to, to)[0],
        }))
        if (to >= 20_700) expect(await listAll(catalog, to, 2), `step ${step}`).toEqual(expected)
      }
    })

    test('US2, US3 changes at the same time in two processes are counted on the day of their transaction', async () => {
      fakeClock(start + day - 2)
      const { catalog, other } = await openTwo(fresh)
      const id = await newBucket(catalog, 'b')
      const add = (count: number) =>
        Promise.all(
          Array.from({ length: count }, (_, index) =>
            (index % 2 === 0 ? catalog : other).addItems(id, inBlobStore([newItem({ size: 10 })])),
          ),
        )
      await add(20)
      vi.setSystemTime(start + day)
      await Promise.all([add(30), catalog.addUsage([counted(id, { listRequests: 2 })])])
      const [first, second] = await other.findUsage(id, 20_700, 20_701)
      expect(first).toEqual({
        ...noUsage,
        day: 20_700,
        items: 20,
        bytes: 200,
        addedItems: 20,
        addedBytes: 200,
      })
      expect(second).toEqual({
        ...{ ...noUsage, day: 20_701, items: 50, bytes: 500, addedItems: 30, addedBytes: 300 },
        listRequests: 2,
      })
    })

    test('US8 what processes have counted is added up', async () => {
      fakeClock()
      const { catalog, other } = await openTwo(fresh)
      const ids = [await newBucket(catalog, 'a'), await newBucket(catalog, 'b')]
      const one = (id: BucketId) =>
        counted(id, {
          downloadedBytes: 5,
          listRequests: 1,
          downloadRequests: 2,
          uploadRequests: 3,
          otherRequests: 4,
        })
      const rows = ids.map(one)
      await Promise.all([catalog.addUsage(rows), other.addUsage(rows.toReversed()), catalog.addUsage(rows)])
      for (const id of ids)
        expect(await other.findUsage(id, 20_700, 20_700)).toEqual([
          {
            ...{ ...noUsage, day: 20_700, items: 0, bytes: 0, downloadedBytes: 15 },
            ...{ listRequests: 3, downloadRequests: 6, uploadRequests: 9, otherRequests: 12 },
          },
        ])
    })

    test('US5 old days are removed, and the items and bytes of the kept ones stay', async () => {
      fakeClock()
      const catalog = await openOne(fresh)
      const id = await newBucket(catalog, 'b')
      const model = new Model()
      for (let at = 0; at < 8; at += 1) {
        vi.setSystemTime(start + at * day)
        const items = [newItem({ size: 100 + at }), newItem()]
        await catalog.addItems(id, inBlobStore(items))
        model.add(items)
        const ids = some(() => 0, model.live.keys(), 1)
        await catalog.removeItems(id, ids, undefined, Date.now())
        model.remove(ids)
      }
      const today = 20_707
      expect(await catalog.removeUsage(start + 4 * day + 5, 3)).toBe(3)
      expect(await catalog.removeUsage(start + 4 * day + 5, 3)).toBe(1)
      expect(await catalog.removeUsage(start + 4 * day + 5, 3)).toBe(0)
      expect(await catalog.findUsage(id, 20_704, today)).toEqual(model.usage(20_704, today))
      const [removed] = await catalog.findUsage(id, 20_703, today)
      expect(removed).toEqual({ ...noUsage, ...pick(model.usage(20_703, 20_703)), day: 20_703 })
    })

    test('US3, US11 a bucket that was created while the clock was ahead is listed on the days that have its usage', async () => {
      fakeClock(start + 2 * day)
      const catalog = await openOne(fresh)
      const [kept, deleted] = [await newBucket(catalog, 'a'), await newBucket(catalog, 'b')]
      await newBucket(catalog, 'c')
      vi.setSystemTime(start)
      for (const id of [kept, deleted]) await catalog.addItems(id, inBlobStore([newItem({ size: 10 })]))
      while (!(await catalog.deleteBucketChunk(deleted, 9, start + 1)).isDeleted);
      const added = { ...noUsage, day: 20_700, addedItems: 1, addedBytes: 10 }
      const expected = [
        { id: kept, name: 'a', deletedAt: null, usage: { ...added, items: 1, bytes: 10 } },
        {
          ...{ id: deleted, name: 'b', deletedAt: start + 1 },
          usage: { ...added, items: 0, bytes: 0, removedItems: 1, removedBytes: 10 },
        },
      ]
      const today = await listAll(catalog, 20_700, 2)
      expect(today.slice(0, 2)).toEqual(expected)
      expect(today.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
      vi.setSystemTime(start + day)
      expect(await listAll(catalog, 20_700, 2)).toEqual(expected)
      expect(await listAll(catalog, 20_699, 2)).toEqual([])
    })

    test('US6 the usage of a deleted bucket is kept with its name, apart from that of a later one', async () => {
      fakeClock()
      const catalog = await openOne(fresh)
      const id = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { trashDays: 7 })
      const items = [newItem({ size: 7 }), newItem({ size: 8 })]
      await catalog.addItems(id, inBlobStore(items))
      await catalog.removeItems(
        id,
        items.slice(1).map(({ id }) => id),
        undefined,
        Date.now(),
      )
      vi.setSystemTime(start + day)
      while (!(await catalog.deleteBucketChunk(id, 1, Date.now())).isDeleted);
      await catalog.addUsage([counted(id, { downloadedBytes: 3 })])
      const later = await newBucket(catalog, 'b')
      const rows = async (at: number) =>
        (await listAll(catalog, at, 1)).map(({ id, name, deletedAt, usage }) => [
          ...[id, name, deletedAt, usage.items, usage.bytes],
          ...[
            usage.addedItems,
            usage.addedBytes,
            usage.removedItems,
            usage.removedBytes,
            usage.downloadedBytes,
          ],
        ])
      expect(await rows(20_699)).toEqual([])
      expect(await rows(20_700)).toEqual([[id, 'b', start + day, 1, 15, 2, 15, 1, 0, 0]])
      expect(await rows(20_701)).toEqual([
        [id, 'b', start + day, 0, 0, 0, 0, 1, 15, 3],
        [later, 'b', null, 0, 0, 0, 0, 0, 0, 0],
      ])
      vi.setSystemTime(start + 2 * day)
      expect((await rows(20_702)).map(([id]) => id)).toEqual([later])
      const removeAll = async (before: number) => {
        while ((await catalog.removeUsage(before, 1)) > 0);
      }
      await removeAll(start + 2 * day)
      expect((await rows(20_700)).map(([id]) => id)).toEqual([])
    })

    test('US5 usage is kept for 400 days, today included', () => expect(keptDays).toBe(400))
  })
}

const pick = ([found]: DayUsage[]) => ({ items: found?.items ?? 0, bytes: found?.bytes ?? 0 })
