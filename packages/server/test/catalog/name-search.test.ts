import { expect, test } from 'vitest'
import { seededRandom } from '../../../../test/harness/random.ts'
import { kindOf } from '../../src/catalog/item-kinds.ts'
import { type GroupSizes, groupedReads, singleReads } from '../../src/catalog/names/candidates.ts'
import type { NameResults } from '../../src/catalog/names/name-reads.ts'
import { searchNames } from '../../src/catalog/names/search-names.ts'
import {
  blockSize,
  buildSegment,
  chunksOf,
  chunksPerSegment,
  mergedSize,
  mergeSegments,
  type NewSegment,
  type Segment,
} from '../../src/catalog/names/segments.ts'
import type { BucketId, Item, ItemPlace, ItemSelection } from '../../src/catalog/records.ts'
import { itemOrders } from '../../src/core/items-query.ts'
import { matchesName, parseNameSearch } from '../../src/core/name-search.ts'
import { newItem } from './samples.ts'

type Items = ReadonlyMap<number, Item>

const unseen = { thumbhash: null, duration: null, altText: null, caption: null }
const itemOf = (fields: Partial<Item>): Item => ({ ...newItem(fields), ...unseen })

/** An index in memory, over items whose numbers ascend. */
function createIndex(items: Items, nextSeq: number, segments: readonly NewSegment[]) {
  const rows = [...items].map(([seq, item]) => ({ seq, item }))
  const stored: Segment[] = segments.map((segment, id) => ({ ...segment, id }))
  const chunks = new Map(
    segments.flatMap((segment, id) =>
      chunksOf(segment).map((chunk, number) => [id * chunksPerSegment + number, chunk] as const),
    ),
  )

  let chunkReads = 0
  let mostSegments = 0

  function run(selection: ItemSelection, after: ItemPlace | null, limit: number, sizes: GroupSizes) {
    const segmentsRead = new Set<number>()
    const search = searchNames(
      { segments: stored, nextSeq, now: 0 },
      selection,
      selection.name ?? [],
      after,
      limit,
      sizes,
    )
    let step = search.next()
    for (let steps = 0; !step.done; steps += 1) {
      if (steps > 10_000) throw new Error('the search does not end')
      const reads = step.value
      const { names } = reads
      chunkReads += reads.chunks.length
      for (const number of reads.chunks) segmentsRead.add(Math.floor(number / chunksPerSegment))
      const inRange = names === null ? [] : rows.filter(({ seq }) => seq >= names.from && seq < names.to)
      const results: NameResults = {
        chunks: new Map(
          reads.chunks.flatMap((number) => {
            const chunk = chunks.get(number)
            return chunk ? [[number, chunk] as const] : []
          }),
        ),
        marks: [],
        names: (names?.isNewest ? inRange.reverse() : inRange)
          .slice(0, names?.limit)
          .map(({ seq, item: { filename } }) => ({ seq, filename })),
        items: reads.items.flatMap((seq) => {
          const item = items.get(seq)
          return item ? [{ seq, item }] : []
        }),
      }
      step = search.next(results)
    }
    mostSegments = Math.max(mostSegments, segmentsRead.size)
    return step.value
  }

  return {
    chunks,
    /** The chunks that searches have read. */
    chunkReads: () => chunkReads,
    /** The most segments of which one search has read chunks. */
    mostSegments: () => mostSegments,
    /** The numbers of all selected items, by several searches, and how many of these ended early. */
    all(selection: ItemSelection, limit: number, sizes: GroupSizes) {
      const found: number[] = []
      let early = 0
      for (let after: ItemPlace | null = null; ; ) {
        const { rows, examined } = run(selection, after, limit, sizes)
        found.push(...rows.map(({ seq }) => seq))
        if (examined) early += 1
        if (early > 1000) throw new Error('the cursors do not end')
        const last = rows.at(-1)
        const place: ItemPlace | null =
          examined ?? (rows.length === limit && last ? { seq: last.seq, createdAt: 0 } : null)
        if (place === null) return { found, early }
        after = place
      }
    },
  }
}

const selectionOf = (text: string, fields: Partial<ItemSelection> = {}): ItemSelection => ({
  bucketId: 1 as BucketId,
  order: 'oldest',
  kind: null,
  from: null,
  to: null,
  name: parseNameSearch(text),
  ...fields,
})

const rowsOf = (items: Items, first: number) =>
  [...items].flatMap(([seq, { filename, contentType, createdAt }]) =>
    seq >= first && seq < first + blockSize ? [{ seq, filename, contentType, createdAt }] : [],
  )

/** A merged segment, two others, a block without one, another segment, and a rest that is not indexed. */
function manyNames() {
  const random = seededRandom()
  const words = ['sea', 'Straße', '写真', 'img', 'a', 'e\u0301', 'report']
  const items = new Map<number, Item>()
  const nextSeq = mergedSize + 5 * blockSize
  for (let seq = 0; seq < nextSeq; seq += 1 + random(12)) {
    const filename = `${words[random(7)]} ${words[random(7)]}${random(200)}`
    items.set(seq, itemOf({ filename, contentType: random(9) ? 'image/png' : 'video/mp4', createdAt: seq }))
  }
  const build = (block: number) => buildSegment(block * blockSize, rowsOf(items, block * blockSize))
  const parts = Array.from({ length: 16 }, (_, block) => build(block))
  const merged = mergeSegments(parts.map((segment) => ({ segment, chunks: chunksOf(segment) })))
  return { items, index: createIndex(items, nextSeq, [merged, build(16), build(17), build(19)]) }
}

/** Those of SQLite and of PostgreSQL. */
const bothSizes = [singleReads, groupedReads]

const searches: readonly ItemSelection[] = itemOrders.flatMap((order) => [
  selectionOf('sea', { order }),
  selectionOf('strasse 写', { order }),
  selectionOf('19', { order, kind: 'video' }),
  selectionOf('report 199', { order }),
  selectionOf('a', { order, from: 3 * blockSize + 5, to: 17 * blockSize }),
  selectionOf('report sea img', { order }),
])

function expectAll(items: Items, { all }: Pick<ReturnType<typeof createIndex>, 'all'>): void {
  for (const selection of searches)
    for (const sizes of bothSizes) {
      const { order, kind, from, to, name } = selection
      const expected = [...items].flatMap(([seq, { filename, contentType, createdAt }]) =>
        matchesName(filename, name ?? []) &&
        (kind === null || kindOf(contentType) === kind) &&
        createdAt >= (from ?? 0) &&
        createdAt < (to ?? createdAt + 1)
          ? [seq]
          : [],
      )
      const { found } = all(selection, 250, sizes)
      expect({ selection, found }).toEqual({
        selection,
        found: order === 'oldest' ? expected : expected.reverse(),
      })
    }
}

test('K11, K12 merged segments, others, and names between and above them are searched together', () => {
  const { items, index } = manyNames()
  expectAll(items, index)
})

test('a search that finds damaged and missing chunks compares the names instead', () => {
  const { items, index } = manyNames()
  const random = seededRandom()
  for (const [number, chunk] of index.chunks) {
    const damage = random(8)
    if (damage === 0) index.chunks.delete(number)
    if (damage === 1) index.chunks.set(number, chunk.subarray(0, random(chunk.length)))
    const changed = chunk.map((byte, at) => (at === 7 ? byte ^ 64 : byte))
    if (damage === 2) index.chunks.set(number, changed)
  }
  expectAll(items, index)
})

test('K13, K4 a search that compares very many names ends early, and its cursor leads to the others', () => {
  const items = new Map<number, Item>()
  const item = itemOf({ filename: 'other' })
  for (let seq = 0; seq < 90_000; seq += 1) items.set(seq, item)
  for (const seq of [5, 70_000]) items.set(seq, itemOf({ filename: 'needle' }))
  const index = createIndex(items, 90_000, [])
  for (const [order, expected] of [
    ['oldest', [5, 70_000]],
    ['newest', [70_000, 5]],
  ] as const)
    expect(index.all(selectionOf('needle', { order }), 10, singleReads)).toEqual({
      found: expected,
      early: 2,
    })
})

test.each([40_100, 40_500].flatMap((count) => bothSizes.map((sizes) => ({ count, ...sizes }))))(
  'K13 a search whose bound is reached at the end of the names without an index leads to the segment after them: %o',
  ({ count, ...sizes }) => {
    const needle = itemOf({ filename: 'needle' })
    const other = itemOf({ filename: 'other' })
    // In the order of the search, the segment is last.
    for (const [order, unindexed, first] of [
      ['newest', blockSize, 0],
      ['oldest', 10 * blockSize - count, 10 * blockSize],
    ] as const) {
      const items = new Map<number, Item>([[first + 7, needle]])
      for (let seq = unindexed; seq < unindexed + count; seq += 1) items.set(seq, other)
      const segment = buildSegment(first, rowsOf(items, first))
      const index = createIndex(items, Math.max(first + blockSize, unindexed + count), [segment])
      const found = (text: string) => index.all(selectionOf(text, { order }), 10, sizes)
      expect(found('qzx')).toEqual({ found: [], early: 1 })
      expect(found('needle')).toEqual({ found: [first + 7], early: 1 })
    }
  },
)

/** Blocks with names of two kinds that have no word in common. The time of an item is its number. */
function twoKinds(blocks: number, distance = 64) {
  const items = new Map<number, Item>()
  const segments = Array.from({ length: blocks }, (_, block) => {
    const own = new Map<number, Item>()
    for (let seq = block * blockSize; seq < (block + 1) * blockSize; seq += distance) {
      own.set(seq, itemOf({ filename: `clip ${seq}.mp4`, createdAt: seq }))
      own.set(seq + 1, itemOf({ filename: `invoice ${seq}.pdf`, createdAt: seq }))
    }
    for (const [seq, item] of own) items.set(seq, item)
    return buildSegment(block * blockSize, rowsOf(own, block * blockSize))
  })
  return createIndex(items, blocks * blockSize, segments)
}

test('K11 two frequent words that no name has together are excluded by two lists of each segment', () => {
  const index = twoKinds(50)
  const { found } = index.all(selectionOf('invoice clip'), 100, singleReads)
  expect(found).toEqual([])
  // The first segments show which lists these are.
  expect(index.chunkReads()).toBeLessThan(2 * 50 + 20)
})

test.each(bothSizes)(
  'K13 a search without a match reads a bounded number of segments, however many there are: %o',
  (sizes) => {
    const index = twoKinds(850, blockSize)
    for (const order of itemOrders)
      expect(index.all(selectionOf('qzx', { order }), 100, sizes)).toEqual({ found: [], early: 2 })
    expect(index.mostSegments()).toBe(400)
  },
)

test.each(bothSizes)('K13 a search that ends at its bound with nothing left has no cursor: %o', (sizes) => {
  const index = twoKinds(400, blockSize)
  for (const order of itemOrders)
    expect(index.all(selectionOf('qzx', { order }), 100, sizes)).toEqual({ found: [], early: 0 })
})

test.each(bothSizes)('K13 segments without items of the chosen time hardly count: %o', (sizes) => {
  const index = twoKinds(850, blockSize)
  const selected = { from: 700 * blockSize, to: 701 * blockSize }
  for (const order of itemOrders)
    expect(index.all(selectionOf('clip', { order, ...selected }), 100, sizes)).toEqual({
      found: [700 * blockSize],
      early: 0,
    })
  expect(index.mostSegments()).toBe(1)
})

test('posting lists exclude items: of many names, few are read', () => {
  const items = new Map<number, Item>()
  for (let seq = 0; seq < blockSize; seq += 1)
    items.set(seq, itemOf({ filename: seq === 9 ? 'a b needle' : `${seq % 2 ? 'a' : 'b'}.jpg` }))
  const segment = buildSegment(0, rowsOf(items, 0))
  const read: number[] = []
  const search = searchNames(
    { segments: [{ ...segment, id: 0 }], nextSeq: blockSize, now: 0 },
    selectionOf('needle'),
    ['needle'],
    null,
    10,
    singleReads,
  )
  const chunks = new Map(chunksOf(segment).map((chunk, number) => [number, chunk]))
  let step = search.next()
  while (!step.done) {
    read.push(...step.value.items)
    step = search.next({ chunks, marks: [], names: [], items: [] })
  }
  expect(read).toEqual([9])
})
