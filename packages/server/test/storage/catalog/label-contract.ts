import { itemKinds } from '@mediabucket/client/rules'
import { describe, expect, test } from 'vitest'
import { seededRandom } from '../../../../../test/harness/random.ts'
import { changeLabels, type LabelChanges, type Labels } from '../../../src/core/item-labels.ts'
import { itemOrders } from '../../../src/core/queries.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import { kindNumberOf } from '../../../src/storage/catalog/items/item-kinds.ts'
import type {
  BucketId,
  ItemDetails,
  ItemPlace,
  ItemRows,
  ItemSelection,
} from '../../../src/storage/catalog/records.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { hashOf, inBlobStore, newBucket, newItem } from './samples.ts'

const ids = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id)

const selecting = (
  bucketId: BucketId,
  labels: Labels,
  fields: Partial<ItemSelection> = {},
): ItemSelection => ({
  ...{ bucketId, order: 'oldest', kind: null, from: null, to: null, name: null, labels },
  ...fields,
})

/** Reads all selected items, `limit` at a time. */
async function allItems(catalog: Catalog, selection: ItemSelection, limit: number): Promise<ItemDetails[]> {
  const found: ItemDetails[] = []
  for (let after: ItemPlace | null = null; ; ) {
    const { rows, examined }: ItemRows = await catalog.items(selection, after, limit)
    found.push(...rows.map(({ item }) => item))
    const last = rows.at(-1)
    if (rows.length === limit && last) after = { seq: last.seq, createdAt: last.item.createdAt }
    else if (examined === null) return found
    else after = examined
  }
}

const labelsOf = (random: (below: number) => number): Labels | null =>
  changeLabels(
    null,
    Object.fromEntries(
      ['album', 'user', '__proto__', 'x.y'].flatMap((key) =>
        random(2) === 0 ? [] : [[key, `${random(3)}`]],
      ),
    ),
  )

const types = ['image/jpeg', 'video/mp4', 'application/pdf', 'font/woff2', 'application/constructor']

/** Items with generated labels, times, types and names. */
const labelledItems = (count: number, random: (below: number) => number) =>
  Array.from({ length: count }, () => {
    const labels = labelsOf(random)
    return newItem({
      createdAt: 1_000 + random(40),
      contentType: types[random(types.length)] ?? '',
      filename: random(2) === 0 ? 'Harbour.jpg' : 'boats.jpg',
      ...(labels === null ? {} : { labels }),
    })
  })

const has = (item: { readonly labels?: Labels | null }, labels: Labels): boolean =>
  Object.entries(labels).every(([key, value]) => item.labels?.[key] === value)

/** Labels of items, on every catalog engine. */
export function describeLabels(engine: string, fresh: Fresh): void {
  describe(`${engine}: labels`, () => {
    test('M7, M8, K15 labels are in every read, change one by one and in bulk, and are counted', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const stranger = await newBucket(catalog, 'stranger')
      const labels = { album: '42', user: 'ü"\\' }
      const [item, bare] = [newItem({ labels }), newItem()]
      await catalog.addItems(bucketId, inBlobStore([item, bare]))
      await catalog.addItems(stranger, inBlobStore([newItem({ labels: { secret: '1' } })]))
      expect(await other.item(item.id)).toMatchObject({ labels })
      expect((await other.item(bare.id))?.labels).toBeUndefined()

      const changes: LabelChanges = { album: '43', user: null, none: null }
      expect(await catalog.editItem(bucketId, item.id, { labels: changes }, null)).toMatchObject({
        labels: { album: '43' },
      })
      const before = await catalog.findGrant(hashOf('b'))
      await catalog.editItem(bucketId, item.id, { labels: changes }, null)
      expect((await catalog.findGrant(hashOf('b')))?.revision).toBe(before?.revision)
      const state = { ...item, altText: null, caption: null, labels }
      expect(await catalog.editItem(bucketId, item.id, { caption: 'x' }, state)).toBe('changed')

      const unknown = newItem().id
      expect(await catalog.labelItems(bucketId, [bare.id, unknown, item.id], { user: '7' })).toMatchObject({
        ids: expect.toSatisfy((found: string[]) => found.length === 2 && !found.includes(unknown)),
        full: [],
      })
      expect((await catalog.findGrant(hashOf('b')))?.revision).not.toBe(before?.revision)
      const limits = { maxKeys: 9, maxValues: 9 }
      expect(await other.listLabels(bucketId, null, limits)).toEqual([
        { key: 'album', values: [{ value: '43', items: 1 }] },
        { key: 'user', values: [{ value: '7', items: 2 }] },
      ])
      expect(ids(await allItems(other, selecting(bucketId, { user: '7' }), 1))).toEqual([item.id, bare.id])
      expect(await allItems(other, selecting(bucketId, { user: '7', album: '42' }), 9)).toEqual([])
      expect(await allItems(other, selecting(stranger, { user: '7' }), 9)).toEqual([])

      const many = Object.fromEntries(Array.from({ length: 15 }, (_, index) => [`k${index}`, '']))
      expect(await catalog.labelItems(bucketId, [bare.id, item.id], many)).toEqual({
        ids: [],
        full: [item.id],
      })
      expect(await catalog.editItem(bucketId, item.id, { labels: many }, null)).toBe('full')
      await catalog.labelItems(bucketId, [bare.id], many)
      const first = await catalog.listLabels(bucketId, null, { maxKeys: 3, maxValues: 9 })
      expect(first.map(({ key }) => key)).toEqual(['album', 'k0', 'k1'])
      expect(await catalog.listLabels(bucketId, 'k0', limits)).toEqual([
        { key: 'k0', values: [{ value: '', items: 1 }] },
      ])
    })

    test('K14 the selected items are those of a model, after adding, labelling, trashing and restoring', async () => {
      const random = seededRandom()
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { trashDays: 1 })
      const items = labelledItems(120, random)
      await catalog.addItems(bucketId, inBlobStore(items))
      let present: (typeof items)[number][] = [...items]
      for (let step = 0; step < 30; step += 1) {
        const some = present.filter(() => random(20) === 0)
        const changes: LabelChanges = {
          album: random(3) === 0 ? null : `${random(3)}`,
          'x.y': `${random(3)}`,
        }
        await catalog.labelItems(bucketId, ids(some) as (typeof items)[number]['id'][], changes)
        present = present.map((item) =>
          some.includes(item) ? { ...item, labels: changeLabels(item.labels, changes) } : item,
        )
        const gone = present.filter(() => random(20) === 0)
        await catalog.removeItems(
          bucketId,
          gone.map(({ id }) => id),
        )
        const back = gone.filter(() => random(2) === 0)
        await catalog.restoreItems(
          bucketId,
          back.map(({ id }) => id),
        )
        present = present.filter((item) => !gone.includes(item) || back.includes(item))
      }
      const counts = new Map<string, number>()
      for (const { labels } of present)
        for (const label of Object.entries(labels ?? {}).map(String))
          counts.set(label, (counts.get(label) ?? 0) + 1)
      const keys = await catalog.listLabels(bucketId, null, { maxKeys: 9, maxValues: 9 })
      const counted = keys.flatMap(({ key, values }) =>
        values.map(({ value, items }) => [`${key},${value}`, items] as const),
      )
      expect(new Map(counted)).toEqual(counts)

      const all: Labels[] = [
        { album: '1' },
        { album: '0', user: '1' },
        { album: '2', user: '0', 'x.y': '1' },
        JSON.parse('{"__proto__":"1"}'),
      ]
      for (const labels of all)
        for (const order of itemOrders)
          for (const fields of [
            {},
            { kind: 'image' },
            { from: 1_010, to: 1_030 },
            { kind: 'document', from: 1_005 },
            { name: ['harbour'] },
          ] as const) {
            const selection = selecting(bucketId, labels, { order, ...fields })
            const { kind, from, to, name } = selection
            const wanted = present
              .filter(
                (item) =>
                  has(item, labels) &&
                  (kind === null || itemKinds[kindNumberOf(item.contentType)] === kind) &&
                  (from === null || item.createdAt >= from) &&
                  (to === null || item.createdAt < to) &&
                  (name === null || item.filename === 'Harbour.jpg'),
              )
              .toSorted((one, two) => one.createdAt - two.createdAt)
            for (const limit of [3, 500])
              expect(ids(await allItems(catalog, selection, limit))).toEqual(
                ids(order === 'oldest' ? wanted : wanted.toReversed()),
              )
          }
    })

    test('K5, K14 a crawl returns every item that keeps its labels exactly once, under concurrent changes', async () => {
      const random = seededRandom()
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const labels = { album: '1' }
      const mine = Array.from({ length: 300 }, (_, index) =>
        newItem({ createdAt: index, labels: index % 3 === 0 ? { ...labels, user: '2' } : labels }),
      )
      await catalog.addItems(bucketId, inBlobStore(mine))
      let isOver = false
      const change = async () => {
        while (!isOver) {
          const added = labelledItems(3, random)
          await other.addItems(bucketId, inBlobStore(added))
          await other.labelItems(
            bucketId,
            added.map(({ id }) => id),
            { album: `${random(2)}` },
          )
          const [first] = added
          if (first) await other.removeItems(bucketId, [first.id])
          const kept = mine[random(mine.length)]
          if (kept) await other.labelItems(bucketId, [kept.id], { 'x.y': `${random(9)}` })
        }
      }
      const changing = change()
      for (const order of itemOrders)
        for (const selected of [labels, { album: '1', user: '2' }]) {
          const found = ids(await allItems(catalog, selecting(bucketId, selected, { order }), 7))
          expect(new Set(found).size).toBe(found.length)
          const wanted = ids(mine.filter((item) => has(item, selected)))
          expect(found.filter((id) => wanted.includes(id))).toEqual(
            order === 'oldest' ? wanted : wanted.toReversed(),
          )
        }
      isOver = true
      await changing
    })
  })
}
