import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { seededRandom } from '../../../../test/harness/random.ts'
import type { Catalog } from '../../src/catalog/catalog.ts'
import type {
  BucketId,
  Item,
  ItemPlace,
  ItemRows,
  ItemSelection,
  NewMedia,
} from '../../src/catalog/records.ts'
import { itemOrders } from '../../src/core/items-query.ts'
import { matchesName, parseNameSearch } from '../../src/core/name-search.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { inBlobStore, newBucket, newItem } from './samples.ts'

const ids = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id)

function searchFor(bucketId: BucketId, text: string, fields: Partial<ItemSelection> = {}): ItemSelection {
  const name = parseNameSearch(text)
  if (name === null) throw new Error(`${text} is no search`)
  return { bucketId, order: 'oldest', kind: null, from: null, to: null, name, ...fields }
}

/** Reads all selected items, `limit` at a time. */
async function allItems(catalog: Catalog, selection: ItemSelection, limit = 500): Promise<Item[]> {
  const found: Item[] = []
  for (let after: ItemPlace | null = null; ; ) {
    const { rows, examined }: ItemRows = await catalog.items(selection, after, limit)
    found.push(...rows.map(({ item }) => item))
    const last = rows.at(-1)
    if (rows.length === limit && last) after = { seq: last.seq, createdAt: last.item.createdAt }
    else if (examined === null) return found
    else after = examined
  }
}

async function addNamed(catalog: Catalog, bucketId: BucketId, items: readonly NewMedia[]): Promise<void> {
  for (let done = 0; done < items.length; done += 1024)
    await catalog.addMedia(bucketId, inBlobStore(items.slice(done, done + 1024)))
}

const words = [
  'Beach',
  'Straße',
  'STRAẞE',
  'été',
  '写真',
  'img_',
  'report',
  'a',
  '%',
  '"',
  'x-y',
  '한국',
  'Ω',
  'がく',
]

/** Items with generated names, of which some have none. */
function namedItems(count: number, random: (below: number) => number): NewMedia[] {
  const word = () => words[random(words.length)] ?? ''
  const types = ['image/jpeg', 'video/mp4', 'application/pdf'] as const
  return Array.from({ length: count }, (_, index) =>
    newItem({
      filename: random(20) === 0 ? null : `${word()} ${word()}${random(300)}.${word()}`,
      contentType: types[random(9)] ?? types[0],
      createdAt: index,
    }),
  )
}

/** Two blocks and a half. */
const manyItems = 10_240

/** The behaviour of every catalog engine with searches by name. */
export function describeNameSearch(engine: string, fresh: Fresh): void {
  describe(`${engine}: search by name`, () => {
    test('K11 words and parts of words are found in any case and order, without diacritics, literally', async () => {
      const catalog = await openOne(fresh)
      const [bucketId, other] = [await newBucket(catalog, 'a'), await newBucket(catalog, 'b')]
      const names = [
        'Sommer am Strand.JPG',
        'Été à la plage.png',
        '100%_sure.txt',
        '東京の写真.jpg',
        'Hauptstraße "1".pdf',
        'ΟΔΟΣ.md',
        'STRAẞE.txt',
        '각.txt',
        'がく.txt',
      ]
      const items = [...names, null].map((filename) => newItem({ filename }))
      await addNamed(catalog, bucketId, items)
      await addNamed(
        catalog,
        other,
        items.map(({ filename }) => newItem({ filename })),
      )
      const found = async (text: string) =>
        (await allItems(catalog, searchFor(bucketId, text))).map(({ filename }) =>
          names.indexOf(filename ?? ''),
        )
      expect(await found('strand')).toEqual([0])
      expect(await found('TRAN')).toEqual([0])
      expect(await found('jpg sommer')).toEqual([0])
      expect(await found('ete PLAGE')).toEqual([1])
      expect(await found('E\u0301te\u0301')).toEqual([1])
      expect(await found('%_s')).toEqual([2])
      expect(await found('0_')).toEqual([])
      expect(await found('写真')).toEqual([3])
      expect(await found('京')).toEqual([3])
      expect(await found('strasse')).toEqual([4, 6])
      expect(await found('aßE aẞe')).toEqual([4, 6])
      expect([await found('각'), await found('\u1100\u1161\u11a8'), await found('가')]).toEqual([
        [7],
        [7],
        [],
      ])
      expect([await found('がく'), await found('ｶﾞｸ'), await found('か'), await found('かく')]).toEqual([
        [8],
        [],
        [],
        [],
      ])
      expect(await found('"1"')).toEqual([4])
      expect(await found('οδός')).toEqual([5])
      expect(await found('.')).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8])
    })

    test('K11, K2, K4, K8 a search of indexed and other items returns what a comparison of all names does', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'a')
      const random = seededRandom()
      const items = namedItems(manyItems, random)
      await addNamed(catalog, bucketId, items)
      await catalog.indexNames()
      const removed = new Set(items.filter(() => random(100) === 0))
      for (const { id } of removed) await catalog.removeMedia(bucketId, [id])
      const kept = items.filter((item) => !removed.has(item))
      const texts = [
        'beach',
        'ss',
        'x-y 1',
        '真',
        'img_ report',
        '7.',
        '2 3 4',
        'a',
        '%%',
        'zebra',
        '한',
        '하',
        'か',
        'がく',
        'été stra',
        '299.',
      ]
      for (const text of texts) {
        const words = searchFor(bucketId, text).name ?? []
        const named = kept.filter(({ filename }) => matchesName(filename, words))
        for (const order of itemOrders)
          for (const fields of [
            {},
            { kind: 'video' },
            { from: 100, to: 5000 },
            { kind: 'document', from: 9000 },
          ] as const) {
            const selection = searchFor(bucketId, text, { order, ...fields })
            const { kind, from, to } = { kind: null, from: null, to: null, ...fields }
            const typeOf = { video: 'video/mp4', document: 'application/pdf' } as const
            const matching = named.filter(
              ({ contentType, createdAt }) =>
                (kind === null || contentType === typeOf[kind]) &&
                createdAt >= (from ?? 0) &&
                createdAt < (to ?? manyItems),
            )
            const expected = ids(order === 'oldest' ? matching : matching.toReversed())
            const found = ids(await allItems(catalog, selection, 100 + random(400)))
            expect({ selection, found }).toEqual({ selection, found: expected })
          }
      }
    })

    test('K12 an added item is found at once, also after its names were indexed, and a deleted one is not', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'a')
      const random = seededRandom()
      await addNamed(catalog, bucketId, namedItems(5000, random))
      for (const isIndexed of [false, true]) {
        if (isIndexed) await catalog.indexNames()
        const item = newItem({ filename: `needle ${isIndexed}.jpg` })
        await addNamed(catalog, bucketId, [item])
        expect(ids(await allItems(other, searchFor(bucketId, 'needle')))).toEqual([item.id])
        await addNamed(catalog, bucketId, namedItems(4096, random))
        await other.indexNames()
        expect(ids(await allItems(other, searchFor(bucketId, 'needle')))).toEqual([item.id])
        await catalog.removeMedia(bucketId, [item.id])
        expect(await allItems(other, searchFor(bucketId, 'needle'))).toEqual([])
      }
    })

    test('K12 a renamed item is found by its new name only, whether its names are indexed or not', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'a')
      const items = namedItems(4100, seededRandom())
      await addNamed(catalog, bucketId, items)
      await catalog.indexNames()
      for (const item of [items[7], items[4099]]) {
        if (item === undefined) throw new Error('no item')
        const rename = (filename: string) => catalog.editMedia(bucketId, item.id, { filename }, null)
        const found = async (text: string) => ids(await allItems(catalog, searchFor(bucketId, text)))
        await rename('First name.txt')
        expect([await found('first'), await found('second')]).toEqual([[item.id], []])
        await rename('Second name.txt')
        expect([await found('first'), await found('second')]).toEqual([[], [item.id]])
        await catalog.removeMedia(bucketId, [item.id])
        expect(await found('second')).toEqual([])
      }
    })

    test.each(itemOrders)(
      'K5 while another process adds, deletes and indexes, each of the others is found exactly once: %s first',
      async (order) => {
        const { catalog, other } = await openTwo(fresh)
        const bucketId = await newBucket(catalog, 'a')
        const random = seededRandom()
        const all = namedItems(7000, random)
        await addNamed(catalog, bucketId, all)
        const doomed = all.filter(() => random(50) === 0)
        const kept = all.filter((item) => !doomed.includes(item))
        const selection = searchFor(bucketId, 'beach .', { order })
        const matching = ids(kept.filter(({ filename }) => matchesName(filename, selection.name ?? [])))
        const expected = order === 'oldest' ? matching : matching.toReversed()
        let isOver = false
        async function change() {
          for (let round = 0; !isOver; round += 1) {
            // A list of the oldest items ends when no more are added.
            if (round < 30) await addNamed(other, bucketId, namedItems(200, random))
            const item = doomed.pop()
            if (item) await other.removeMedia(bucketId, [item.id])
            await other.indexNames()
            await setImmediate()
          }
        }
        const changing = change()
        try {
          for (let round = 0; round < 6; round += 1) {
            const found = ids(await allItems(catalog, selection, 20 + round * 70))
            expect(new Set(found).size).toBe(found.length)
            const wanted = new Set(expected)
            expect(found.filter((id) => wanted.has(id))).toEqual(expected)
          }
        } finally {
          isOver = true
          await changing
        }
      },
    )

    test('a deleted bucket leaves nothing of its names, and two processes that index at once build one index', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'a')
      await addNamed(catalog, bucketId, namedItems(9000, seededRandom()))
      await Promise.all([catalog.indexNames(), other.indexNames()])
      expect(await allItems(other, searchFor(bucketId, 'zebra'))).toEqual([])
      for (let isDeleted = false; !isDeleted; )
        ({ isDeleted } = await catalog.deleteBucketChunk(bucketId, 1000, 1))
      const missing = catalog.items(searchFor(bucketId, 'beach'), null, 5)
      await expect(missing).rejects.toMatchObject({ code: 'token-revoked' })
    })
  })
}
