import { describe, expect, test } from 'vitest'
import { seededRandom } from '../../../../../test/harness/random.ts'
import { type ItemOrder, itemOrders } from '../../../src/core/queries.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import { kindNumber, kindNumberOf } from '../../../src/storage/catalog/items/item-kinds.ts'
import type {
  BucketId,
  ItemDetails,
  ItemPlace,
  ItemRows,
  ItemSelection,
  NewItem,
} from '../../../src/storage/catalog/records.ts'
import { type Fresh, openOne } from './fresh-data.ts'
import { hashOf, inBlobStore, newBucket, newItem } from './samples.ts'

const ids = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id)
const hexOf = (content: string) => Buffer.from(hashOf(content)).toString('hex')

const selecting = (bucketId: BucketId, fields: Partial<ItemSelection>): ItemSelection => ({
  ...{ bucketId, order: 'oldest', kind: null, from: null, to: null, name: null },
  ...fields,
})

/** Reads all selected items, `limit` at a time. */
async function allItems(catalog: Catalog, selection: ItemSelection, limit: number): Promise<ItemDetails[]> {
  const found: ItemDetails[] = []
  for (let after: ItemPlace | null = null; ; ) {
    const { rows, examined }: ItemRows = await catalog.items(selection, after, limit)
    found.push(...rows.map(({ item }) => item))
    const last = rows.at(-1)
    if (rows.length === limit && last)
      after = { seq: last.seq, createdAt: last.item.createdAt, path: last.item.path ?? null }
    else if (examined === null) return found
    else after = examined
  }
}

const compareBytes = (one: string, other: string) => Buffer.compare(Buffer.from(one), Buffer.from(other))

/** The behaviour of every catalog engine with searches by bytes and by path. */
export function describeFileSearches(engine: string, fresh: Fresh): void {
  describe(`${engine}: items by their bytes and paths`, () => {
    test('K16 items with the same bytes are found in the order of their addition, and no others', async () => {
      const catalog = await openOne(fresh)
      const [bucketId, other] = [await newBucket(catalog, 'b'), await newBucket(catalog, 'other')]
      const same = [1, 2, 3].map((createdAt) => newItem({ sha256: hashOf('same'), createdAt: -createdAt }))
      // The index has the first bytes only.
      const similar = Uint8Array.from(hashOf('same'))
      similar[31] = (similar[31] ?? 0) ^ 1
      for (const item of same)
        await catalog.addItems(bucketId, inBlobStore([newItem({ sha256: similar }), item]))
      await catalog.addItems(other, inBlobStore([newItem({ sha256: hashOf('same') })]))
      for (const order of itemOrders)
        for (const limit of [1, 2, 9]) {
          const selection = selecting(bucketId, { order, sha256: hexOf('same') })
          const expected = ids(order === 'oldest' ? same : same.toReversed())
          expect(ids(await allItems(catalog, selection, limit))).toEqual(expected)
        }
      expect(await allItems(catalog, selecting(bucketId, { sha256: hexOf('absent') }), 9)).toEqual([])
      await catalog.removeItems(bucketId, ids(same.slice(0, 2)) as NewItem['id'][])
      expect(ids(await allItems(catalog, selecting(bucketId, { sha256: hexOf('same') }), 9))).toEqual(
        ids(same.slice(2)),
      )
    })

    test('K16 items with the same bytes are found among thousands, in both orders', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      // In the first, second and third block of the index of SQLite (hash-source.ts), and at their ends.
      const places = new Set([0, 7, 2_047, 2_048, 4_095, 4_096, 4_999])
      const items = Array.from({ length: 5_000 }, (_, index) =>
        newItem({ sha256: hashOf(places.has(index) ? 'same' : `${index}`) }),
      )
      await catalog.addItems(bucketId, inBlobStore(items))
      const same = items.filter((_, index) => places.has(index))
      for (const order of itemOrders)
        for (const limit of [1, 3, 9]) {
          const selection = selecting(bucketId, { order, sha256: hexOf('same') })
          const expected = ids(order === 'oldest' ? same : same.toReversed())
          expect(ids(await allItems(catalog, selection, limit))).toEqual(expected)
        }
    })

    test('K17 the selected items are those of a model, in the order of their paths, with any other filter', async () => {
      const random = seededRandom()
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const names = ['a', 'B', 'é', '𐀀', '～', 'a b', 'a.jpg', '%', '_', "'"]
      const items = Array.from({ length: 300 }, (_, index) => {
        const depth = random(4)
        const path = Array.from({ length: depth }, () => names[random(names.length)]).join('/')
        return newItem({
          ...(path === '' ? {} : { path }),
          contentType: random(2) === 0 ? 'image/jpeg' : 'text/plain',
          filename: random(3) === 0 ? 'Beach.jpg' : 'harbour.jpg',
          createdAt: 1_000 + random(50),
          sha256: hashOf(`${index % 3}`),
          ...(random(2) === 0 ? { labels: { album: `${random(2)}` } } : {}),
        })
      })
      await catalog.addItems(bucketId, inBlobStore(items))
      const gone = items.filter(() => random(10) === 0)
      await catalog.removeItems(
        bucketId,
        gone.map(({ id }) => id),
      )
      const present = items.filter((item) => !gone.includes(item))
      expect(await catalog.item(present.find(({ path }) => path)?.id ?? newItem().id)).toMatchObject({
        path: expect.any(String),
      })

      const model = (selection: ItemSelection, order: ItemOrder) => {
        const { path = null, sha256 = null, kind, from, to, name, labels } = selection
        const found = present
          .map((item, index) => ({ item, index }))
          .filter(
            ({ item }) =>
              (path === null || item.path?.startsWith(path) === true) &&
              (sha256 === null || Buffer.from(item.sha256).toString('hex') === sha256) &&
              (kind === null || kindNumberOf(item.contentType) === kindNumber(kind)) &&
              (from === null || item.createdAt >= from) &&
              (to === null || item.createdAt < to) &&
              (name === null || item.filename === 'Beach.jpg') &&
              (labels?.['album'] === undefined || item.labels?.['album'] === labels['album']),
          )
          .toSorted((one, two) =>
            sha256 === null
              ? compareBytes(one.item.path ?? '', two.item.path ?? '') || one.index - two.index
              : one.index - two.index,
          )
          .map(({ item }) => item.id)
        return order === 'oldest' ? found : found.toReversed()
      }
      for (const path of ['', 'a', 'a/', 'é/B', '𐀀', '%', '_', '/', 'absent'])
        for (const fields of [
          {},
          { kind: 'image' },
          { from: 1_010, to: 1_040 },
          { name: ['beach'] },
          { labels: { album: '1' } },
          { sha256: hexOf('1') },
        ] as const)
          for (const order of itemOrders) {
            const selection = selecting(bucketId, { ...fields, path, order })
            const limit = 1 + random(20)
            expect(ids(await allItems(catalog, selection, limit)), JSON.stringify(selection)).toEqual(
              model(selection, order),
            )
          }
    })

    test('K5, K17 a list continues after an item that was deleted, and within items of one path', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const items = ['a/1', 'a/2', 'a/2', 'a/2', 'b/1'].map((path) => newItem({ path }))
      await catalog.addItems(bucketId, inBlobStore(items))
      const selection = selecting(bucketId, { path: '' })
      const { rows } = await catalog.items(selection, null, 3)
      const last = rows.at(-1)
      if (last === undefined) throw new Error('no items')
      await catalog.removeItems(bucketId, [last.item.id])
      const place = { seq: last.seq, createdAt: 0, path: last.item.path ?? null }
      const next = await catalog.items(selection, place, 3)
      expect(next.rows.map(({ item }) => item.path)).toEqual(['a/2', 'b/1'])
    })
  })
}
