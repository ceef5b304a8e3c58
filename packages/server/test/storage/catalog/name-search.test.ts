import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../../../../test/harness/postgres.ts'
import { itemOrders } from '../../../src/core/queries.ts'
import { listNumberedOperation } from '../../../src/items/item-list-operations.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import {
  openConnections,
  parseDatabaseUrl,
} from '../../../src/storage/catalog/engines/postgres/connections.ts'
import { openPostgresCatalog } from '../../../src/storage/catalog/engines/postgres/postgres-catalog.ts'
import { runQuery } from '../../../src/storage/catalog/engines/postgres/session.ts'
import { prepareSearchNames } from '../../../src/storage/catalog/engines/sqlite/name-search.ts'
import { openSqliteCatalog } from '../../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import {
  all,
  createRun,
  openConnection,
} from '../../../src/storage/catalog/engines/sqlite/sqlite-database.ts'
import type { Bounds } from '../../../src/storage/catalog/lists/item-scan.ts'
import { createSearchQueue, searchItems } from '../../../src/storage/catalog/lists/item-searches.ts'
import type { BucketId, ItemPlace, ItemRows, ItemSelection } from '../../../src/storage/catalog/records.ts'
import { type Row, sqliteText, text } from '../../../src/storage/catalog/statements.ts'
import { inBlobStore, newBucket, newItem } from './samples.ts'

/** Of numbers 0 to 299; 100 to 249 are deleted. Every 10th is a video. */
const count = 300
const [firstDeleted, endOfDeleted] = [100, 250]
const stays = (seq: number) => seq < firstDeleted || seq >= endOfDeleted
const isVideo = (seq: number) => seq % 10 === 0

/** Adds the items and deletes some of them. Both engines give the bucket the same number. */
async function fill(catalog: Catalog): Promise<BucketId> {
  const bucketId = await newBucket(catalog, 'a')
  const items = Array.from({ length: count }, (_, seq) =>
    newItem({
      filename: `clip-${seq}`,
      contentType: isVideo(seq) ? 'video/mp4' : 'image/png',
      createdAt: seq,
    }),
  )
  await catalog.addItems(bucketId, inBlobStore(items))
  await catalog.removeItems(
    bucketId,
    items.slice(firstDeleted, endOfDeleted).map(({ id }) => id),
  )
  await catalog.close()
  return bucketId
}

const directory = mkdtempSync(join(tmpdir(), 'mediabucket-names-'))
const database = createDatabase('catalog')
let bucketId: BucketId
beforeAll(async () => {
  bucketId = await fill(await openSqliteCatalog({ directory, writer: 'direct' }))
  const { url } = await database
  expect(await fill(await openPostgresCatalog({ url, role: 'command' }))).toBe(bucketId)
})
afterAll(async () => {
  rmSync(directory, { recursive: true })
  const { release } = await database
  await release()
})

const selectionOf = (fields: Partial<ItemSelection>): ItemSelection => ({
  bucketId,
  order: 'oldest',
  kind: null,
  from: null,
  to: null,
  name: ['clip'],
  ...fields,
})

test.each(['sqlite', 'postgres'] as const)(
  'a search without any filter is a list, and ends: %s',
  async (engine) => {
    const db = openConnection(directory)
    onTestFinished(() => db.close())
    const { url } = await database
    const connections = await openConnections(parseDatabaseUrl(url), { readers: 1, writers: 1 })
    onTestFinished(() => connections.close())
    const selection = selectionOf({ name: null })
    const query = () => searchItems(engine, selection, null, 200)
    const { rows, examined } =
      engine === 'sqlite'
        ? createRun(db)(query())
        : await connections.read(({ run }) => runQuery(run, query()))
    expect(rows.map(({ seq }) => seq)).toEqual(numbers)
    expect(examined).toBeNull()
  },
)

type Search = (
  selection: ItemSelection,
  bounds: Partial<Bounds>,
  after: ItemPlace | null,
  limit: number,
) => ItemRows | Promise<ItemRows>

function openSqliteSearch(): Search {
  const db = openConnection(directory)
  onTestFinished(() => db.close())
  return (selection, bounds, after, limit) => prepareSearchNames(db, bounds)({ selection, after, limit })
}

async function openPostgresSearch(
  onStatement: (statement: string, values: unknown[]) => void = () => undefined,
): Promise<Search> {
  const { url } = await database
  const connections = await openConnections(parseDatabaseUrl(url), { readers: 1, writers: 1 })
  onTestFinished(() => connections.close())
  return (selection, bounds, after, limit) =>
    connections.read(({ run }) =>
      runQuery(
        (statement, ...values) => {
          onStatement(statement, values)
          return run(statement, ...values)
        },
        searchItems('postgres', selection, after, limit, bounds),
      ),
    )
}

/** The numbers of all selected items, by several searches, and how many of these ended early. */
async function searchAll(
  search: Search,
  bounds: Partial<Bounds>,
  terms: string,
  limit: number,
  fields: Partial<ItemSelection>,
) {
  const found: number[] = []
  const [term = '', ...others] = terms.split(' ')
  for (let early = 0, after: ItemPlace | null = null; ; ) {
    if (early > count) throw new Error('the cursors do not end')
    const selection = { ...selectionOf(fields), name: [term, ...others] } as const
    const { rows, examined }: ItemRows = await search(selection, bounds, after, limit)
    found.push(...rows.map(({ seq }) => seq))
    const last = rows.at(-1)
    if (examined !== null) early += 1
    if (examined === null && (last === undefined || rows.length < limit)) return { found, early }
    after = examined ?? { seq: last?.seq ?? 0, createdAt: 0 }
  }
}

const numbers = Array.from({ length: count }, (_, seq) => seq).filter(stays)
const inOrder = (order: ItemSelection['order'], found: readonly number[]) =>
  order === 'oldest' ? found : found.toReversed()

describe.each(itemOrders)('%s first', (order) => {
  describe.each([
    ['SQLite', openSqliteSearch],
    ['PostgreSQL', openPostgresSearch],
  ] as const)('%s', (_name, openSearch) => {
    test('K13, K4 a search that compares very many names ends early, and its cursor leads to the others', async () => {
      const search = await openSearch()
      // Numbers without items are passed by at once.
      expect(await searchAll(search, { numbers: 60, rows: 1000 }, 'clip-299', 10, { order })).toEqual({
        found: [299],
        early: 2,
      })
      expect(await searchAll(search, { numbers: 60, rows: 1000 }, 'clip', 7, { order })).toMatchObject({
        found: inOrder(order, numbers),
      })
    })

    test('K13, K8 a search whose filters exclude very many items with the name ends early', async () => {
      const search = await openSearch()
      const bounds = { numbers: 1000, rows: 40 }
      const { found, early } = await searchAll(search, bounds, 'clip', 10, { order, kind: 'video' })
      expect(found).toEqual(inOrder(order, numbers.filter(isVideo)))
      expect(early).toBeGreaterThan(0)
      const times = { order, from: 20, to: 270 }
      expect(await searchAll(search, { numbers: 1000, rows: 1000 }, 'clip', 3, times)).toEqual({
        found: inOrder(
          order,
          numbers.filter((seq) => seq >= 20 && seq < 270),
        ),
        early: 0,
      })
    })

    test('K13 a search that ends at its bound with nothing left has no cursor', async () => {
      const search = await openSearch()
      // A bucket with few items is searched to its end, whatever numbers they have.
      for (const bound of [count, numbers.length])
        expect(await searchAll(search, { numbers: bound, rows: 1000 }, 'zebra', 10, { order })).toEqual({
          found: [],
          early: 0,
        })
    })
  })

  test('K4, K13 a search on PostgreSQL that compares its names with many statements finds the same', async () => {
    const search = await openPostgresSearch()
    for (const comparedRows of [1, 2, 5]) {
      const bounds = { numbers: count, rows: 1000, comparedRows }
      const found = (term: string, more: Partial<Bounds> = {}) =>
        searchAll(search, { ...bounds, ...more }, term, 7, { order })
      expect(await found('clip')).toEqual({ found: inOrder(order, numbers), early: 0 })
      expect(await found('clip-299')).toEqual({ found: [299], early: 0 })
      expect(await found('zebra')).toEqual({ found: [], early: 0 })
      expect(await found('clip', { numbers: 60 })).toMatchObject({ found: inOrder(order, numbers) })
      // Many rows have all terms, and few of them in one name: a statement returns its most rows without a match.
      for (const limit of [1, 2])
        expect(await searchAll(search, bounds, 'clip 2 7 9', limit, { order })).toEqual({
          found: inOrder(order, [279, 297]),
          early: 0,
        })
    }
  })

  test.each([
    // There are seven rows: none of them is in the middle of the deleted numbers.
    ['zebra', 1, [1, 1, 1, 1]],
    ['zebra', 2, [2, 2, 2, 2]],
    ['clip-31', 2, [2, 2, 2, 2]],
  ])(
    'K13 each statement on PostgreSQL compares two rows of names, and few matches do not make the next one send more (%s, limit %i)',
    async (term, limit, sent) => {
      const rowLimits: unknown[] = []
      const search = await openPostgresSearch((statement, values) => {
        if (statement.includes('item_names')) rowLimits.push(values[3])
      })
      const selection = selectionOf({ order, name: [term] })
      await search(selection, { numbers: 1000, rows: 1000, comparedRows: 2 }, null, limit)
      expect(rowLimits).toEqual(sent)
    },
  )

  test('K18 a numbered page that a search cannot complete is refused', async () => {
    const db = openConnection(directory)
    onTestFinished(() => db.close())
    const search = prepareSearchNames(db, { numbers: 60, rows: 1000 })
    const listNumbered = listNumberedOperation({
      catalog: {
        items: async (selection, after, limit) => search({ selection, after, limit }),
        itemsAt: () => Promise.reject(new Error('no list without a filter')),
      },
    })
    const list = (term: string, number: number) =>
      listNumbered(
        bucketId,
        { ...selectionOf({ order, name: [term] }), limit: 5, after: null },
        { number, size: 5 },
        async () => undefined,
      )
    expect(await list('clip', 1)).toMatchObject({ items: { length: 5 }, total: null, hasMore: true })
    for (const [term, number] of [
      ['clip-299', 1],
      ['clip', 14],
    ] as const)
      await expect(list(term, number)).rejects.toMatchObject({
        code: 'parameter-malformed',
        message: expect.stringContaining('next_cursor'),
      })
  })

  test('SQLite reads the rows with names in their order, and the items by their keys', () => {
    const db = openConnection(directory)
    onTestFinished(() => db.close())
    const search = searchItems('sqlite', selectionOf({ order, kind: 'video', name: ['a', 'b'] }), null, 10)
    const planOf = (result?: Row): string[] => {
      const { value } = result === undefined ? search.next() : search.next({ rows: [result], changedRows: 0 })
      if (!('sql' in value)) throw new Error('the search ended')
      const { sql, values } = value
      const inputs = values.map((value) => (typeof value === 'number' ? value : '[]'))
      const sqlText = typeof sql === 'string' ? sql : (sql.sqlite ?? '')
      return all(db.prepare(`EXPLAIN QUERY PLAN ${sqliteText(sqlText)}`), ...inputs).map((row) =>
        text(row, 3),
      )
    }
    planOf()
    expect(planOf([1, 0, 5, 10])).toEqual([
      'SEARCH item_names USING PRIMARY KEY (bucket_id=? AND slot>? AND slot<?)',
    ])
    const plan = planOf([0, 'a b'])
    expect(plan[0]).toBe('SEARCH items USING PRIMARY KEY (bucket_id=? AND seq=?)')
    expect(plan.join()).not.toContain('TEMP B-TREE')
  })
})

test('buckets take turns with their searches, and a bucket cannot fill the queue', async () => {
  const queue = createSearchQueue(1)
  const [one, other] = [1 as BucketId, 2 as BucketId]
  const { promise: first, resolve: end } = Promise.withResolvers<void>()
  const order: string[] = []
  const search = (id: BucketId, name: string) => queue(id, async () => void order.push(name))
  const running = queue(one, () => first)
  const waiting = [...Array(50).keys()].map((index) => search(one, `one ${index}`))
  await expect(search(one, 'refused')).rejects.toMatchObject({ code: 'overloaded' })
  waiting.push(search(other, 'other 0'), search(other, 'other 1'))
  end()
  await Promise.all([running, ...waiting, setImmediate()])
  expect(order.slice(0, 5)).toEqual(['one 0', 'other 0', 'one 1', 'other 1', 'one 2'])
  expect(order).toHaveLength(52)
})
