import type { DatabaseSync } from 'node:sqlite'
import { itemKinds } from '@mediabucket/client/rules'
import { expect, test } from 'vitest'
import type { Labels } from '../../../src/core/item-labels.ts'
import { itemKeyOf } from '../../../src/core/object-key-rules.ts'
import { itemOrders } from '../../../src/core/queries.ts'
import { expiredColumn, expiredOfBucket, expiredOfTrash } from '../../../src/storage/catalog/buckets.ts'
import { openDataDirectory } from '../../../src/storage/catalog/engines/sqlite/data-directory.ts'
import { openSqliteCatalog } from '../../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import {
  all,
  createRun,
  openConnection,
} from '../../../src/storage/catalog/engines/sqlite/sqlite-database.ts'
import { expiredTrash, expiringTrashes } from '../../../src/storage/catalog/items/trash.ts'
import { placeOf } from '../../../src/storage/catalog/lists/item-lists.ts'
import { isSearch, searchFirst, searchItems } from '../../../src/storage/catalog/lists/item-searches.ts'
import { removeKeys } from '../../../src/storage/catalog/objects/object-keys.ts'
import type { BucketId, ItemPlace, ItemRows, ItemSelection } from '../../../src/storage/catalog/records.ts'
import { type Query, type Row, sqliteText, text } from '../../../src/storage/catalog/statements.ts'
import { expiredUploads } from '../../../src/storage/catalog/uploads.ts'
import { hashOf, inBlobStore, newBucket, newItem } from './samples.ts'
import { tempDirectory } from './temp-directory.ts'

const listings = [null, 'taken' as const, 'name' as const].flatMap((by) =>
  itemOrders.map((order) => ({ order, by })),
)

/** A row of a bucket with many items, as a scan reads it first. */
const bucketRow = [0, 0, 10_000, 10_000]

/** The plan of the next statement of a query, after the rows of the one before it. */
function planOf(db: DatabaseSync, query: Query<unknown>, ...rows: readonly Row[]): string[] {
  const step = query.next({ rows, changedRows: 0 })
  if (step.done) throw new Error('no statement follows')
  const { sql, values } = step.value
  const inputs = values.map((input) => (typeof input === 'object' ? Buffer.alloc(8) : input))
  const explained = `EXPLAIN QUERY PLAN ${sqliteText((typeof sql === 'string' ? sql : sql.sqlite) ?? '')}`
  return all(db.prepare(explained), ...inputs).map((row) => text(row, 3))
}

test('K9, K19, K20 SQLite reads every list from an index in the order of the list, and sorts nothing', () => {
  using db = openDataDirectory(tempDirectory())
  for (const { order, by } of listings)
    for (const kind of [null, ...itemKinds])
      for (const from of [null, 5])
        for (const to of [null, 7])
          for (const after of [null, { seq: 3, createdAt: 6, name: 'a' }]) {
            const selection = { bucketId: 1 as BucketId, order, by, kind, from, to, name: null }
            const search = searchItems('sqlite', selection, after, 10)
            search.next()
            const plan = planOf(db, search, bucketRow)
            const isFiltered = by !== null || kind !== null || from !== null || to !== null
            const searches = plan.filter((step) => /^(SEARCH|SCAN)/.test(step))
            for (const step of searches)
              expect({ selection, step }).toEqual({
                selection,
                step: expect.stringMatching(
                  isFiltered
                    ? /USING INDEX items_by_(?:kind|taken|name) \(bucket_id=\? AND <expr>=\? AND .*(?:(?:created|taken)_at|name_key)[<>]\?/
                    : /USING PRIMARY KEY \(bucket_id=\? AND seq[<>]\?\)/,
                ),
              })
            const kinds = kind === null ? itemKinds.length : 1
            expect(searches).toHaveLength(isFiltered ? (by === 'name' ? 1 : 2) * kinds : 1)
            expect(searches.filter((step) => step.includes('items_by_name'))).toHaveLength(
              by === 'name' ? kinds : 0,
            )
            expect(searches.filter((step) => step.includes('items_by_taken'))).toHaveLength(
              by === 'taken' ? kinds : 0,
            )
            expect(plan.join()).not.toContain('TEMP B-TREE')
          }
})

test.each<Partial<ItemSelection>>([
  {},
  { name: ['a'] },
  { labels: { a: '1' } },
  { path: 'a/' },
  { by: 'taken' },
  { by: 'name', startName: 'a' },
])('a filter that no search knows fails instead of selecting all items, with %j', (filters) => {
  const list = {
    bucketId: 1 as BucketId,
    order: 'oldest',
    kind: null,
    from: null,
    to: null,
    name: null,
  } as const
  const selection = { ...list, ...filters, later: 3 }
  expect(isSearch(selection)).toBe(true)
  for (const engine of ['sqlite', 'postgres'] as const)
    expect(() => searchItems(engine, selection, null, 10).next()).toThrow(/knows the filter later/)
  expect(searchFirst('sqlite', selection, null, 10).next()).toEqual({ done: true, value: null })
})

test('E2 SQLite finds the expired items that are not counted by an index, without those that expired at the same time as the last counted one', () => {
  using db = openDataDirectory(tempDirectory())
  const state = `SELECT ${expiredColumn('sqlite', '?1')}, ${expiredOfBucket('sqlite', '?1')}, ${expiredOfTrash('sqlite', '?1')} FROM buckets`
  const plan = all(db.prepare(`EXPLAIN QUERY PLAN ${state}`), 8).map((row) => text(row, 3))
  const searches = plan.filter((step) => step.startsWith('SEARCH items '))
  expect(searches.length).toBeGreaterThan(0)
  for (const step of searches)
    expect(step).toMatch(/INDEX items_item_expiry \(bucket_id=\? AND \(item_expires_at,seq\)>\(\?,\?\) AND/)
})

test('R8, Z5 SQLite finds expired uploads, and expired items of a trash, by an index, and passes by no others', () => {
  using db = openDataDirectory(tempDirectory())
  const ofTrash = expect.stringMatching(
    /^SEARCH items .*INDEX items_expiry \(bucket_id=\? AND expires_at>\? AND expires_at<\?\)/,
  )
  expect(planOf(db, expiredTrash(1 as BucketId, 5, 100))).toEqual([ofTrash])
  expect(planOf(db, expiringTrashes(5))).toContainEqual(ofTrash)
  expect(planOf(db, expiredUploads(5, 100, null))).toEqual([
    expect.stringMatching(/^SEARCH uploads USING INDEX uploads_by_expiry \(\(expires_at,id\)>\(\?,\?\)/),
  ])
})

test('K17 SQLite reads items by path from an index, and sorts nothing', () => {
  using db = openDataDirectory(tempDirectory())
  for (const order of itemOrders)
    for (const after of [null, { seq: 3, createdAt: 6, path: 'a/b' }]) {
      const selection = { bucketId: 1 as BucketId, order, kind: null, from: null, to: null, name: null }
      const search = searchItems('sqlite', { ...selection, path: 'a/' }, after, 10)
      search.next()
      expect(planOf(db, search, bucketRow)).toEqual([
        expect.stringMatching(/USING INDEX items_by_path \(bucket_id=\? AND .*path[<>]\?/),
      ])
    }
})

test('K16 SQLite finds the blocks with a hash, and their items, by an index, and sorts nothing', () => {
  using db = openDataDirectory(tempDirectory())
  for (const order of itemOrders)
    for (const after of [null, { seq: 3_000, createdAt: 6 }]) {
      const selection = { bucketId: 1 as BucketId, order, kind: null, from: null, to: null, name: null }
      const search = searchItems('sqlite', { ...selection, sha256: '00'.repeat(32) }, after, 10)
      search.next()
      const blocks = planOf(db, search, bucketRow)
      expect(blocks.filter((step) => step.includes('items'))).toEqual([
        expect.stringMatching(/INDEX items_by_hash \(bucket_id=\? AND <expr>=\? AND <expr>=\?\)/),
      ])
      expect(blocks.join()).not.toContain('TEMP B-TREE')
      expect(planOf(db, search, [1])).toEqual([
        expect.stringMatching(
          /INDEX items_by_hash \(bucket_id=\? AND <expr>=\? AND <expr>=\? AND seq[<>]\?\)/,
        ),
      ])
    }
})

test('K14 SQLite reads the rows of the rarest label in their order, looks up the other labels, and sorts nothing', () => {
  using db = openDataDirectory(tempDirectory())
  for (const order of itemOrders)
    for (const kind of [null, 'image'] as const) {
      const selection = { bucketId: 1 as BucketId, order, kind, from: null, to: null, name: null }
      const search = searchItems('sqlite', { ...selection, labels: { a: '1', b: '2' } }, null, 10)
      search.next()
      search.next({ rows: [bucketRow], changedRows: 0 })
      const labels = [
        [1, 5_000],
        [2, 5_000],
      ]
      const [found, last] = [planOf(db, search, ...labels), planOf(db, search)]
      const range =
        /^SEARCH item_labels USING PRIMARY KEY \(bucket_id=\? AND label_id=\? AND kind=\? AND .*\(created_at,seq\)/
      for (const plan of [found, last]) {
        expect(plan.filter((step) => range.test(step))).toHaveLength(kind === null ? itemKinds.length : 1)
        expect(plan.filter((step) => step.includes('item_labels') && !range.test(step))).toEqual([])
        expect(plan.join()).not.toContain('TEMP B-TREE')
      }
      expect(found).toContain(
        'SEARCH other USING PRIMARY KEY (bucket_id=? AND label_id=? AND kind=? AND created_at=? AND seq=?)',
      )
      expect(found).toContain('SEARCH items USING PRIMARY KEY (bucket_id=? AND seq=?)')
    }
})

const searches = [
  { list: 'K14 a list with labels', by: null },
  { list: 'K19 a list with labels by the time of the camera', by: 'taken' as const },
  { list: 'K20 a list with labels by name', by: 'name' as const },
]

test.each(searches.flatMap((search) => itemOrders.map((order) => ({ ...search, order }))))(
  '$list that reads very many rows ends early, $order first',
  async ({ by, order }) => {
    const directory = tempDirectory()
    const catalog = await openSqliteCatalog({ directory, writer: 'direct' })
    const bucketId = await newBucket(catalog, 'b')
    const items = Array.from({ length: 90 }, (_, index) =>
      newItem({
        createdAt: index,
        filename: `${index}.jpg`,
        labels: { a: '1', ...(index % 30 === 5 ? { c: '1' } : { b: '1' }) },
      }),
    )
    const others = items.slice(0, 60).map(() => newItem({ labels: { c: '1' } }))
    await catalog.addItems(bucketId, inBlobStore([...items, ...others]))
    await catalog.close()
    using db = openConnection(directory)
    const run = createRun(db)
    const selection = { bucketId, order, by, kind: null, from: null, to: null, name: null }
    const labels = { a: '1', c: '1' }
    const found: string[] = []
    let early = 0
    for (let after: ItemPlace | null = null; early < 90; ) {
      const { rows, examined }: ItemRows = run(
        searchItems('sqlite', { ...selection, labels }, after, 1, { rows: 7 }),
      )
      found.push(...rows.map(({ item }) => item.id))
      const last = rows.at(-1)
      if (examined !== null) early += 1
      if (examined === null && last === undefined) break
      after = examined ?? (last ? placeOf(selection, last) : null)
    }
    const wanted = [5, 35, 65].map((index) => items[index]?.id)
    expect(found).toEqual(order === 'oldest' ? wanted : wanted.toReversed())
    expect(early).toBeGreaterThan(0)
  },
)

test('K19, K20 a list by the time of the camera or by name reads few rows if a label, a hash, a path, a name or a time selects few items', async () => {
  const directory = tempDirectory()
  const catalog = await openSqliteCatalog({ directory, writer: 'direct' })
  const bucketId = await newBucket(catalog, 'b')
  const rare = { labels: { a: '1' }, sha256: hashOf('rare'), path: 'rare/1' }
  const common = { labels: { b: '1' }, path: 'common/1' }
  const items = Array.from({ length: 2_000 }, (_, index) =>
    newItem({
      createdAt: index % 700 === 300 ? index : index + 9_000,
      takenAt: 2_000 - index,
      ...(index % 700 === 300 ? { ...rare, filename: `rare ${2_000 - index}` } : common),
    }),
  )
  await catalog.addItems(bucketId, inBlobStore(items))
  await catalog.close()
  using db = openConnection(directory)
  const run = createRun(db)
  let rowsRead = 0
  function* counted<T>(query: Query<T>): Query<T> {
    let step = query.next()
    while (step.done !== true) {
      const result = yield step.value
      rowsRead += result.rows.length
      step = query.next(result)
    }
    return step.value
  }
  const wanted = [1_700, 1_000, 300].map((index) => items[index]?.id)
  const selection = { bucketId, kind: null, from: null, to: null, name: null } as const
  const sha256 = Buffer.from(rare.sha256).toString('hex')
  const filters: Partial<ItemSelection>[] = [
    { labels: rare.labels },
    { sha256 },
    { path: 'rare/' },
    { name: ['rare'] },
    { labels: rare.labels, path: '' },
  ]
  const lists = [
    ...filters.map((filter) => ({ ...filter, by: 'taken' as const })),
    ...[...filters, { to: 9_000 }].map((filter) => ({ ...filter, by: 'name' as const })),
  ]
  for (const list of lists)
    for (const order of itemOrders) {
      rowsRead = 0
      const { rows } = run(counted(searchItems('sqlite', { ...selection, ...list, order }, null, 50)))
      const expected = order === 'oldest' ? wanted : wanted.toReversed()
      expect([list, rows.map(({ item }) => item.id)]).toEqual([list, expected])
      expect(rowsRead).toBeLessThan(1_000)
    }
})

test('K11, K14 a search that has to read many rows is left to the thread of searches, and any other one finds the same here', async () => {
  const directory = tempDirectory()
  const catalog = await openSqliteCatalog({ directory, writer: 'direct' })
  const bucketId = await newBucket(catalog, 'b')
  const items = Array.from({ length: 1_200 }, (_, index) =>
    newItem({
      filename: `clip ${index}`,
      contentType: index % 600 === 599 ? 'video/mp4' : 'image/png',
      labels: { a: '1', ...(index % 2 === 0 ? { b: '1' } : { c: '1' }) },
    }),
  )
  await catalog.addItems(bucketId, inBlobStore(items))
  await catalog.close()
  using db = openConnection(directory)
  const run = createRun(db)
  const any = { bucketId, kind: null, from: null, to: null, name: null } as const
  for (const order of itemOrders) {
    const quick: Partial<ItemSelection>[] = [
      { name: ['clip'] },
      { name: ['clip', '7'] },
      { labels: { a: '1', b: '1' } },
      { labels: { a: '1', d: '1' } },
      { labels: { b: '1' }, name: ['8'] },
    ]
    for (const filter of quick) {
      const selection = { ...any, order, ...filter }
      const found = run(searchFirst('sqlite', selection, null, 10))
      expect([filter, found]).toEqual([filter, run(searchItems('sqlite', selection, null, 10))])
    }
    const long: Partial<ItemSelection>[] = [
      { labels: { b: '1', c: '1' } },
      { labels: { a: '1' }, name: ['zebra'] },
      { name: ['zebra'] },
      { name: ['clip'], kind: 'video' as const },
    ]
    for (const filter of long)
      expect([filter, run(searchFirst('sqlite', { ...any, order, ...filter }, null, 20))]).toEqual([
        filter,
        null,
      ])
  }
})

test('K11 a search that would compare long names is left to the thread of searches, however few items the bucket has', async () => {
  const directory = tempDirectory()
  const catalog = await openSqliteCatalog({ directory, writer: 'direct' })
  const add = async (slug: string, count: number, filename: string, labels: Labels | null) => {
    const bucketId = await newBucket(catalog, slug)
    const items = Array.from({ length: count }, () => newItem({ filename, labels, createdAt: 0 }))
    await catalog.addItems(bucketId, inBlobStore(items))
    return bucketId
  }
  // Each character is folded to 18.
  const long = await add('long', 256, '\ufdfa'.repeat(84), { a: '1' })
  const repeated = await add('repeated', 256, 'a'.repeat(255), null)
  const usual = await add('usual', 1_000, 'IMG_20260501_120000.jpg', null)
  await catalog.close()
  using db = openConnection(directory)
  const run = createRun(db)
  const places = [null, { seq: 128, createdAt: 0 }]
  for (const order of itemOrders)
    for (const after of places)
      for (const [bucketId, name, labels, isFound] of [
        [long, ['وسلم', 'zebra'], null, false],
        [long, ['zebra'], { a: '1' }, false],
        [repeated, [`${'a'.repeat(199)}b`], null, false],
        [repeated, ['zebra'], null, true],
        [usual, ['zebra'], null, true],
        [usual, ['20260502', 'jpg'], null, true],
      ] as const) {
        const selection = { bucketId, order, kind: null, from: null, to: null, name, labels }
        const found = run(searchFirst('sqlite', selection, after, 20))
        const all = run(searchItems('sqlite', selection, after, 20))
        expect({ selection, after, found }).toEqual({ selection, after, found: isFound ? all : null })
      }
})

test('OK2 the items of many keys are found by two statements, which read their rows only', () => {
  using db = openDataDirectory(tempDirectory())
  const keys = ['a', 'b', itemKeyOf(0, newItem()), itemKeyOf(1, newItem())]
  const work = removeKeys(1 as BucketId, keys)
  const statements: string[] = []
  for (let step = work.next(); !step.done && 'sql' in step.value; ) {
    const { sql } = step.value
    statements.push(sqliteText((typeof sql === 'string' ? sql : sql.sqlite) ?? ''))
    step = work.next({ rows: [], changedRows: 0 })
  }
  expect(statements).toHaveLength(2)
  const plans = statements.flatMap((sql) =>
    all(db.prepare(`EXPLAIN QUERY PLAN ${sql}`), 1, '[]', 0).map((row) => text(row, 3)),
  )
  expect(plans.filter((step) => /^SCAN (?!json_each)/.test(step))).toEqual([])
  expect(plans).toContain('SEARCH object_keys USING PRIMARY KEY (bucket_id=? AND key=?)')
})
