import { type ItemKind, itemKinds } from '@mediabucket/client/rules'
import { describe, expect, test } from 'vitest'
import { seededRandom } from '../../../../../test/harness/random.ts'
import { type ItemOrder, itemOrders } from '../../../src/core/queries.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import { placeOf } from '../../../src/storage/catalog/lists/item-lists.ts'
import type {
  BucketId,
  ItemPlace,
  ItemRows,
  ItemSelection,
  NewItem,
} from '../../../src/storage/catalog/records.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { hashOf, inBlobStore, newBucket, newItem, newItems } from './samples.ts'

const ids = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id)

const unfiltered = (bucketId: BucketId, order: ItemOrder): ItemSelection => ({
  bucketId,
  order,
  kind: null,
  from: null,
  to: null,
  name: null,
})

/** Types, and the kind of each. */
const kindOfType: Readonly<Record<string, ItemKind>> = {
  'image/jpeg': 'image',
  'image/svg+xml': 'image',
  'video/mp4': 'video',
  'application/vnd.ms-asf': 'video',
  'audio/mpeg': 'audio',
  'text/plain': 'document',
  'application/pdf': 'document',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'document',
  'application/vnd.oasis.opendocument.text': 'document',
  'application/octet-stream': 'other',
  'application/zip': 'other',
  'application/constructor': 'other',
  'application/vnd.ms-outlook': 'other',
  'font/woff2': 'other',
}

/** Reads the selected items, `limit` at a time. */
async function allItems(catalog: Catalog, selection: ItemSelection, limit: number): Promise<NewItem[]> {
  const found: NewItem[] = []
  for (let after: ItemPlace | null = null; ; ) {
    const { rows }: ItemRows = await catalog.items(selection, after, limit)
    found.push(...rows.map(({ item }) => item))
    const last = rows.at(-1)
    if (last === undefined) return found
    after = placeOf(selection, last)
  }
}

/** The time by which a list has an item (K9, K19). */
const timeOf = ({ by }: Pick<ItemSelection, 'by'>, item: Pick<NewItem, 'takenAt' | 'createdAt'>) =>
  by === 'taken' ? (item.takenAt ?? item.createdAt) : item.createdAt

/** Adds and deletes items until the returned function is called. Deletes only `doomed` and what it added. */
function changeItems(catalog: Catalog, bucketId: BucketId, doomed: readonly NewItem[]) {
  const random = seededRandom()
  const mine = new Set<NewItem['id']>(doomed.map(({ id }) => id))
  let isOver = false
  const change = async () => {
    while (!isOver) {
      const added = newItems(1 + random(3))
      await catalog.addItems(bucketId, inBlobStore(added))
      for (const { id } of added) mine.add(id)
      for (const id of [...mine].filter(() => random(8) === 0).slice(0, 3)) {
        await catalog.removeItems(bucketId, [id])
        mine.delete(id)
      }
    }
  }
  const changing = change()
  return async () => {
    isOver = true
    await changing
  }
}

/** The behaviour of every catalog engine with lists of items. */
export function describeItemLists(engine: string, fresh: Fresh): void {
  describe(`${engine}: lists of items`, () => {
    test('K1, K2 items are returned with all fields, in the order of their addition or its reverse', async () => {
      const catalog = await openOne(fresh)
      const [bucketId, other] = [await newBucket(catalog, 'a'), await newBucket(catalog, 'b')]
      const bare = { filename: null, extension: null, width: null, height: null, size: 0 }
      // The times are not those of the order.
      const items = [newItem({ createdAt: 3 }), newItem({ createdAt: 1, size: 2 ** 45 }), newItem(bare)]
      for (const item of items) {
        await catalog.addItems(bucketId, inBlobStore([item]))
        await catalog.addItems(other, inBlobStore(newItems(2)))
      }
      const oldest = await catalog.items(unfiltered(bucketId, 'oldest'), null, 10)
      expect(oldest.rows.map(({ item }) => item)).toMatchObject(items)
      expect(oldest.revision).toBe((await catalog.findGrant(hashOf('a')))?.revision)
      const newest = await catalog.items(unfiltered(bucketId, 'newest'), null, 10)
      expect(newest).toEqual({ ...oldest, rows: oldest.rows.toReversed() })
    })

    test('K18 items are read by their positions, in both orders, without expired and deleted ones', async () => {
      const catalog = await openOne(fresh)
      for (const hasExpired of [false, true]) {
        const bucketId = await newBucket(catalog, `${hasExpired}`)
        const expiresAt = Date.now() + (hasExpired ? -1 : 1e9)
        const items = Array.from({ length: 300 }, (_, index) =>
          newItem(index % 7 === 1 ? { expiresAt } : { labels: { n: `${index % 2}` } }),
        )
        await catalog.addItems(bucketId, inBlobStore(items))
        const deleted = items.filter((_, index) => index % 5 === 2).map(({ id }) => id)
        await catalog.removeItems(bucketId, deleted)
        const present = items.filter(
          (item) => !deleted.includes(item.id) && !(hasExpired && item.expiresAt === expiresAt),
        )
        for (const order of itemOrders)
          for (const first of [0, 1, 63, 64, 130, present.length - 1, present.length, 10_000]) {
            const expected = ids(order === 'oldest' ? present : present.toReversed()).slice(first, first + 50)
            const read = await catalog.itemsAt(bucketId, order, first, 50)
            expect([read.total, ids(read.items)]).toEqual([present.length, expected])
          }
      }
    })

    test('K3, K4, K6 a list continues after any of its items, also after a deleted one', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'a')
      const items = newItems(7)
      await catalog.addItems(bucketId, inBlobStore(items))
      for (const order of itemOrders)
        for (const limit of [1, 3, 7, 8]) {
          const expected = ids(order === 'oldest' ? items : items.toReversed())
          expect(ids(await allItems(catalog, unfiltered(bucketId, order), limit))).toEqual(expected)
        }
      const selection = unfiltered(bucketId, 'oldest')
      const { rows } = await catalog.items(selection, null, 3)
      const [, , third] = rows
      if (third === undefined) throw new Error('no item')
      await catalog.removeItems(bucketId, [third.item.id])
      const next = await catalog.items(selection, { seq: third.seq, createdAt: third.item.createdAt }, 3)
      expect(ids(next.rows.map(({ item }) => item))).toEqual(ids(items.slice(3, 6)))
    })

    test('K1 an empty bucket has no items; a bucket that does not exist has no list', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'a')
      for (const order of itemOrders) {
        expect(await catalog.items(unfiltered(bucketId, order), null, 5)).toEqual({
          revision: 0,
          expired: 0,
          rows: [],
          examined: null,
        })
        const missing = catalog.items(unfiltered(99 as BucketId, order), null, 5)
        await expect(missing).rejects.toMatchObject({ code: 'bucket-unknown' })
      }
    })

    test('K8, K9 filters select by kind and time, in the order of the times and then of the additions', async () => {
      const catalog = await openOne(fresh)
      const [bucketId, other] = [await newBucket(catalog, 'a'), await newBucket(catalog, 'b')]
      const random = seededRandom()
      const types = Object.keys(kindOfType)
      const items = Array.from({ length: 80 }, (_, index) =>
        newItem({ contentType: types[index % types.length] ?? '', createdAt: random(9) }),
      )
      for (const item of items)
        await catalog.addItems(random(5) === 0 ? other : bucketId, inBlobStore([item]))
      const listed = (await allItems(catalog, unfiltered(bucketId, 'oldest'), 100)).toSorted(
        (one, next) => one.createdAt - next.createdAt,
      )
      const times = [null, 0, 4, 8, 9]
      for (const order of itemOrders)
        for (const kind of [null, ...itemKinds])
          for (const from of times)
            for (const to of times) {
              if (kind === null && from === null && to === null) continue
              const matching = listed.filter(
                ({ contentType, createdAt }) =>
                  (kind === null || kindOfType[contentType] === kind) &&
                  (from === null || createdAt >= from) &&
                  (to === null || createdAt < to),
              )
              const expected = ids(order === 'oldest' ? matching : matching.toReversed())
              const selection = { bucketId, order, kind, from, to, name: null }
              const found = ids(await allItems(catalog, selection, 7))
              expect({ selection, found }).toEqual({ selection, found: expected })
            }
    })

    test('K19 a list by the time at which items were taken has those of unknown time at their upload, with any filter', async () => {
      const catalog = await openOne(fresh)
      const [bucketId, other] = [await newBucket(catalog, 'a'), await newBucket(catalog, 'b')]
      const random = seededRandom()
      const types = Object.keys(kindOfType)
      const items = Array.from({ length: 80 }, (_, index) =>
        newItem({
          contentType: types[index % types.length] ?? '',
          createdAt: random(9),
          ...(random(3) === 0 ? {} : { takenAt: random(9) - 1, takenOffset: random(2) === 0 ? 120 : null }),
          ...(random(2) === 0 ? {} : { labels: { album: `${random(2)}` } }),
          ...(random(2) === 0 ? {} : { path: `${random(2)}/a.jpg` }),
          filename: random(2) === 0 ? 'harbour.jpg' : 'beach.jpg',
          sha256: hashOf(`${random(2)}`),
        }),
      )
      for (const item of items)
        await catalog.addItems(random(5) === 0 ? other : bucketId, inBlobStore([item]))
      const all = await allItems(catalog, unfiltered(bucketId, 'oldest'), 100)
      expect(all.map(({ takenAt }) => takenAt ?? null).filter((time) => time !== null)).not.toEqual([])
      const by = 'taken' as const
      const listed = all.toSorted((one, next) => timeOf({ by }, one) - timeOf({ by }, next))
      const filters: readonly (readonly [Partial<ItemSelection>, (item: NewItem) => boolean])[] = [
        [{}, () => true],
        [{ name: ['beach'] }, ({ filename }) => filename === 'beach.jpg'],
        [{ labels: { album: '1' } }, ({ labels }) => labels?.['album'] === '1'],
        [{ path: '1/' }, ({ path }) => path?.startsWith('1/') === true],
        [
          { sha256: Buffer.from(hashOf('1')).toString('hex') },
          ({ sha256 }) => Buffer.from(hashOf('1')).equals(sha256),
        ],
      ]
      for (const order of itemOrders)
        for (const kind of [null, 'image', 'other'] as const)
          for (const [from, to] of [
            [null, null],
            [4, null],
            [null, 4],
            [0, 7],
          ] as const)
            for (const [filter, matches] of filters) {
              const matching = listed.filter(
                (item) =>
                  matches(item) &&
                  (kind === null || kindOfType[item.contentType] === kind) &&
                  (from === null || timeOf({ by }, item) >= from) &&
                  (to === null || timeOf({ by }, item) < to),
              )
              const selection = { bucketId, order, by, kind, from, to, name: null, ...filter }
              const found = ids(await allItems(catalog, selection, 7))
              const expected = ids(order === 'oldest' ? matching : matching.toReversed())
              expect({ selection, found }).toEqual({ selection, found: expected })
            }
    })

    test('K20 a list by name is in the order of the folded names and the values of their numbers, then of the additions, with any filter', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'a')
      const random = seededRandom()
      const long = 'Ä'.repeat(99)
      // In their order. Those of one row are equal.
      const ordered: readonly (readonly (string | null)[])[] = [
        [null],
        ['(1)'],
        ['7', '007'],
        ['10 a'],
        ['99999999'],
        ['100000000', '00100000000'],
        ['1234567890123456789012'],
        ['A', 'a'],
        ['img_2.JPG', 'IMG_02.jpg'],
        ['img_2a'],
        ['img_10.jpg'],
        ['Ö'],
        ['ss', 'ß'],
        ['z'],
        ['~'],
        ['日本'],
        ['🗺'],
      ].toSpliced(8, 0, [`${long}w`], [`${long}xb`, `${long}xa`])
      const rankOf = ({ filename }: NewItem) => ordered.findIndex((names) => names.includes(filename))
      const names = ordered.flat()
      const nameFor = () => names[random(names.length)] ?? null
      const items = Array.from({ length: 90 }, () =>
        newItem({
          filename: nameFor(),
          contentType: random(2) === 0 ? 'image/jpeg' : 'text/plain',
          createdAt: random(9),
          ...(random(2) === 0 ? {} : { labels: { album: `${random(2)}` } }),
          ...(random(2) === 0 ? {} : { path: `${random(2)}/a.jpg` }),
          sha256: hashOf(`${random(2)}`),
        }),
      )
      await catalog.addItems(bucketId, inBlobStore(items))
      const renamed: NewItem[] = []
      for (const [index, item] of items.entries()) {
        const edited = index % 3 === 0 ? { ...item, filename: nameFor() } : item
        renamed.push(edited)
        if (index % 3 === 0) await catalog.editItem(bucketId, item.id, { filename: edited.filename }, null)
      }
      const listed = renamed.toSorted((one, other) => rankOf(one) - rankOf(other))
      const filters: readonly (readonly [Partial<ItemSelection>, (item: NewItem) => boolean])[] = [
        [{}, () => true],
        [{ name: ['img', 'jpg'] }, ({ filename }) => /img.*jpg/i.test(filename ?? '')],
        [{ labels: { album: '1' } }, ({ labels }) => labels?.['album'] === '1'],
        [{ path: '1/' }, ({ path }) => path?.startsWith('1/') === true],
        [
          { sha256: Buffer.from(hashOf('1')).toString('hex') },
          ({ sha256 }) => Buffer.from(hashOf('1')).equals(sha256),
        ],
      ]
      for (const order of itemOrders)
        for (const kind of [null, 'image'] as const)
          for (const [from, to] of [
            [null, null],
            [4, null],
            [2, 7],
          ] as const)
            for (const [filter, matches] of filters) {
              const matching = listed.filter(
                (item) =>
                  matches(item) &&
                  (kind === null || kindOfType[item.contentType] === kind) &&
                  (from === null || item.createdAt >= from) &&
                  (to === null || item.createdAt < to),
              )
              const by = 'name' as const
              const selection = { bucketId, order, by, kind, from, to, name: null, ...filter }
              const found = ids(await allItems(catalog, selection, 7))
              const expected = ids(order === 'oldest' ? matching : matching.toReversed())
              expect({ selection, found }).toEqual({ selection, found: expected })
            }
    })

    test.each([
      ['oldest', null, null, {}],
      ['newest', null, null, {}],
      ['oldest', 'image', null, {}],
      ['newest', 'image', null, {}],
      ['oldest', null, 'taken', {}],
      ['newest', 'image', 'taken', {}],
      // All items have the name, and few of those that stay have the label.
      ['oldest', null, 'taken', { name: ['harbour'] }],
      ['newest', null, 'taken', { labels: { album: '1' } }],
      ['oldest', null, 'name', {}],
      ['newest', 'image', 'name', {}],
      ['newest', null, 'name', { labels: { album: '1' } }],
    ] as const)(
      'K5 while another process adds and deletes items, each of the others is read exactly once: %s first, kind %s, by %s, with %j',
      async (order, kind, by, filter: Partial<ItemSelection>) => {
        const { catalog, other } = await openTwo(fresh)
        const bucketId = await newBucket(catalog, 'a')
        const kept: NewItem[] = []
        const doomed: NewItem[] = []
        for (let round = 0; round < 20; round += 1) {
          const [mine, ...theirs] = newItems(4).map((item, index) =>
            index % 2 === 0
              ? item
              : {
                  ...item,
                  filename: `harbour ${(round * 7) % 20}.jpg`,
                  takenAt: item.createdAt - round + 9,
                  ...(index === 1 && round % 5 === 0 && { labels: { album: '1' } }),
                },
          )
          kept.push(...theirs)
          if (mine) doomed.push(mine)
          await catalog.addItems(bucketId, inBlobStore(mine ? [...theirs, mine] : theirs))
        }
        const selection = { ...unfiltered(bucketId, order), kind, by, ...filter }
        const selected = kept.filter(({ labels }) => !filter.labels || labels?.['album'] === '1')
        const keyOf = (item: NewItem) =>
          by === 'name' ? Number(item.filename?.match(/\d+/)?.[0] ?? 99) : timeOf(selection, item)
        selected.sort((one, next) => keyOf(one) - keyOf(next))
        const stop = changeItems(other, bucketId, doomed)
        try {
          for (let round = 0; round < 4; round += 1) {
            const found = ids(await allItems(catalog, selection, 1 + round * 2))
            expect(new Set(found).size).toBe(found.length)
            const expected = ids(order === 'oldest' ? selected : selected.toReversed())
            const wanted = new Set(expected)
            expect(found.filter((id) => wanted.has(id))).toEqual(expected)
          }
        } finally {
          await stop()
        }
      },
    )
  })
}
