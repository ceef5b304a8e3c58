import { setImmediate } from 'node:timers/promises'
import { foldName } from '@mediabucket/client/rules'
import { describe, expect, test } from 'vitest'
import { seededRandom } from '../../../../../test/harness/random.ts'
import type { ItemId } from '../../../src/core/ids.ts'
import { parseNameSearch } from '../../../src/core/names.ts'
import { itemOrders } from '../../../src/core/queries.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import type {
  BucketId,
  ItemDetails,
  ItemPlace,
  ItemRows,
  ItemSelection,
  NewItem,
} from '../../../src/storage/catalog/records.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { inBlobStore, newBucket, newItem } from './samples.ts'

const ids = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id)

function searchFor(bucketId: BucketId, text: string, fields: Partial<ItemSelection> = {}): ItemSelection {
  const name = parseNameSearch(text)
  if (name === null) throw new Error(`${text} is no search`)
  return { bucketId, order: 'oldest', kind: null, from: null, to: null, name, ...fields }
}

const matchesName = (filename: string | null, words: readonly string[]): boolean =>
  filename !== null && words.every((word) => foldName(filename).includes(word))

/** Reads all selected items, `limit` at a time. */
async function allItems(catalog: Catalog, selection: ItemSelection, limit = 500): Promise<ItemDetails[]> {
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

async function addNamed(catalog: Catalog, bucketId: BucketId, items: readonly NewItem[]): Promise<void> {
  for (let done = 0; done < items.length; done += 1024)
    await catalog.addItems(bucketId, inBlobStore(items.slice(done, done + 1024)))
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
function namedItems(count: number, random: (below: number) => number): NewItem[] {
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
        // Its folded form is longer than an entry of an index of PostgreSQL can be without compression.
        '\ufdfa'.repeat(85),
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
      // The words overlap in the name.
      expect(await found('nd.jp strand.')).toEqual([0])
      expect(await found('الله عليه')).toEqual([9])
      expect(await found('οδός')).toEqual([5])
      expect(await found('.')).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8])
    })

    test('K11, K2, K4, K8 a search returns what a comparison of all names does', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'a')
      const random = seededRandom()
      const items = namedItems(3000, random)
      await addNamed(catalog, bucketId, items)
      const removed = new Set(items.filter(() => random(100) === 0))
      for (const { id } of removed) await catalog.removeItems(bucketId, [id])
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
      const allFields = [
        {},
        { kind: 'video' },
        { from: 100, to: 1500 },
        { kind: 'document', from: 2700 },
      ] as const
      // The two writers of SQLite search with the same statements.
      const asked = engine === 'SQLite, thread writer' ? texts.filter((_, nth) => nth % 2 === 0) : texts
      for (const [nth, text] of asked.entries()) {
        const words = searchFor(bucketId, text).name ?? []
        const named = kept.filter(({ filename }) => matchesName(filename, words))
        // Each text with each order, and with half of the other fields.
        for (const [at, order] of itemOrders.entries())
          for (const fields of allFields.filter((_, index) => (index + at + nth) % 2 === 0)) {
            const selection = searchFor(bucketId, text, { order, ...fields })
            const { kind, from, to } = { kind: null, from: null, to: null, ...fields }
            const typeOf = { video: 'video/mp4', document: 'application/pdf' } as const
            const matching = named.filter(
              ({ contentType, createdAt }) =>
                (kind === null || contentType === typeOf[kind]) &&
                createdAt >= (from ?? 0) &&
                createdAt < (to ?? Number.POSITIVE_INFINITY),
            )
            const expected = ids(order === 'oldest' ? matching : matching.toReversed())
            const found = ids(await allItems(catalog, selection, 100 + random(400)))
            expect({ selection, found }).toEqual({ selection, found: expected })
          }
      }
    })

    test('K12 an added or restored item is found at once by other processes, and a deleted or expired one is not', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'a')
      const found = async () => ids(await allItems(other, searchFor(bucketId, 'needle')))
      await addNamed(catalog, bucketId, namedItems(50, seededRandom()))
      const [item, expired] = [
        newItem({ filename: 'Needle.jpg' }),
        newItem({ filename: 'needle.txt', expiresAt: Date.now() - 1 }),
      ]
      await addNamed(catalog, bucketId, [item, expired])
      expect(await found()).toEqual([item.id])
      await catalog.setBucket('a', { trashDays: 1 })
      await catalog.removeItems(bucketId, [item.id])
      expect(await found()).toEqual([])
      await catalog.restoreItems(bucketId, [item.id])
      expect(await found()).toEqual([item.id])
      await catalog.setBucket('a', { trashDays: 0 })
      await catalog.removeItems(bucketId, [item.id])
      expect(await found()).toEqual([])
    })

    test('K12 after additions, removals, renamings and restorations near each other, each item is found by its name only', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'a')
      await catalog.setBucket('a', { trashDays: 1 })
      const random = seededRandom()
      const live = new Map<ItemId, string>()
      const trashed = new Map<ItemId, string>()
      const pick = (from: ReadonlyMap<ItemId, string>, count: number) =>
        [...from].toSorted(() => random(2) - 1).slice(0, count)
      const move = (picked: readonly (readonly [ItemId, string])[], from: typeof live, to: typeof live) => {
        for (const [id, name] of picked) {
          from.delete(id)
          to.set(id, name)
        }
      }
      for (let round = 0; round < 25; round += 1) {
        const items = Array.from({ length: random(40) }, (_, index) =>
          newItem({ filename: index % 7 === 0 ? null : `needle-${round}-${index}.` }),
        )
        await addNamed(catalog, bucketId, items)
        for (const { id, filename } of items) live.set(id, filename ?? '')
        // At times the last items too, and all of them.
        const removed = round % 8 === 7 ? [...live] : pick(live, random(30))
        await catalog.removeItems(
          bucketId,
          removed.map(([id]) => id),
        )
        move(removed, live, trashed)
        const restored = pick(trashed, random(20))
        await catalog.restoreItems(
          bucketId,
          restored.map(([id]) => id),
        )
        move(restored, trashed, live)
        for (const [id] of pick(live, 3)) {
          const filename = `needle-renamed-${round}-${random(9)}.`
          await catalog.editItem(bucketId, id, { filename }, null)
          live.set(id, filename)
        }
      }
      const found = await allItems(catalog, searchFor(bucketId, 'needle'))
      const named = [...live].filter(([, name]) => name !== '')
      expect(new Map(found.map(({ id, filename }) => [id, filename]))).toEqual(new Map(named))
      for (const [id, name] of named.slice(0, 40)) {
        const matching = found.filter(({ filename }) => filename?.includes(name))
        expect([id, ids(await allItems(catalog, searchFor(bucketId, name)))]).toEqual([id, ids(matching)])
      }
    })

    test('K12 a renamed item is found by its new name only', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'a')
      const item = newItem({ filename: 'First name.txt' })
      await addNamed(catalog, bucketId, [item])
      const rename = (filename: string) => catalog.editItem(bucketId, item.id, { filename }, null)
      const found = async (text: string) => ids(await allItems(catalog, searchFor(bucketId, text)))
      expect([await found('first'), await found('second')]).toEqual([[item.id], []])
      await rename('Sécond name.txt')
      expect([await found('first'), await found('second')]).toEqual([[], [item.id]])
      await catalog.editItem(bucketId, item.id, { caption: 'first' }, null)
      expect([await found('first'), await found('second')]).toEqual([[], [item.id]])
    })

    test('K5 while another process adds and deletes, each of the others is found exactly once, in both orders', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'a')
      const random = seededRandom()
      const all = namedItems(1500, random)
      await addNamed(catalog, bucketId, all)
      const doomed = all.filter(() => random(50) === 0)
      const kept = all.filter((item) => !doomed.includes(item))
      const oldest = searchFor(bucketId, 'beach .')
      const matching = ids(kept.filter(({ filename }) => matchesName(filename, oldest.name ?? [])))
      const wanted = new Set(matching)
      let isOver = false
      async function change() {
        for (let round = 0; !isOver && (round < 20 || doomed.length > 0); round += 1) {
          // A list of the oldest items ends when no more are added.
          if (round < 20) await addNamed(other, bucketId, namedItems(100, random))
          const item = doomed.pop()
          if (item) await other.removeItems(bucketId, [item.id])
          await setImmediate()
        }
      }
      const changing = change()
      try {
        for (const limit of [20, 160, 370])
          await Promise.all(
            itemOrders.map(async (order) => {
              const found = ids(await allItems(catalog, { ...oldest, order }, limit))
              expect(new Set(found).size).toBe(found.length)
              expect(found.filter((id) => wanted.has(id))).toEqual(
                order === 'oldest' ? matching : matching.toReversed(),
              )
            }),
          )
      } finally {
        isOver = true
        await changing
      }
    })

    test('K13 a search with a term that repeats a character ends early over long names, and its cursors find the item', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'a')
      const long = 'a'.repeat(250)
      const sought = newItem({ filename: `${'a'.repeat(199)}b` })
      const items = Array.from({ length: 8_000 }, () => newItem({ filename: long }))
      await addNamed(catalog, bucketId, [...items, sought])
      for (const order of itemOrders) {
        const selection = searchFor(bucketId, `${'a'.repeat(199)}b`, { order })
        const found: ItemId[] = []
        let early = 0
        for (let after: ItemPlace | null = null; ; early += 1) {
          const { rows, examined }: ItemRows = await catalog.items(selection, after, 5)
          found.push(...rows.map(({ item }) => item.id))
          if (examined === null) break
          after = examined
        }
        expect([found, early]).toEqual([[sought.id], 1])
      }
      // Names of any length are searched to their end for a term without such repetitions.
      expect(await catalog.items(searchFor(bucketId, 'harbour'), null, 5)).toMatchObject({
        rows: [],
        examined: null,
      })
    })

    test('a deleted bucket cannot be searched', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'a')
      await addNamed(catalog, bucketId, namedItems(20, seededRandom()))
      for (let isDeleted = false; !isDeleted; )
        ({ isDeleted } = await catalog.deleteBucketChunk(bucketId, 1000, 1))
      const missing = catalog.items(searchFor(bucketId, 'beach'), null, 5)
      await expect(missing).rejects.toMatchObject({ code: 'bucket-unknown' })
    })
  })
}
