import { Client } from 'pg'
import { expect, onTestFinished, test, vi } from 'vitest'
import { onServer } from '../../../../../test/harness/postgres.ts'
import { itemOrders } from '../../../src/core/queries.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import { openPostgresCatalog } from '../../../src/storage/catalog/engines/postgres/postgres-catalog.ts'
import type { BucketId, ItemSelection, NewItem } from '../../../src/storage/catalog/records.ts'
import { freshDatabase } from './postgres-database.ts'
import { hashOf, newBucket, newItem, newItems, withBytes } from './samples.ts'

// PostgreSQL plans a prepared statement for its values five times. Then it compares the costs, and may do so for each execution.

/** A catalog with one connection for reads and one for changes. */
async function openCatalog() {
  // Its tables are new: the planner has figures of tables that were in use before.
  const url = await freshDatabase()
  const catalog = await openPostgresCatalog({ url, role: 'command' })
  onTestFinished(() => catalog.close())
  return { url, catalog, bucketId: await newBucket(catalog, 'plans') }
}

async function readByKeys(catalog: Catalog, bucketId: BucketId, { id }: NewItem): Promise<void> {
  const item = await catalog.item(id)
  if (item?.contentId == null) throw new Error('an item has no bytes')
  await catalog.content(item.contentId)
  await catalog.servability([id])
  await catalog.findGrant(hashOf('plans'))
  await catalog.page(bucketId, 3)
  await catalog.bucket(bucketId)
}

interface Prepared {
  readonly name: string
  readonly statement: string
  readonly parameters: number
  readonly custom: number
}

/** Runs the work ten times, and returns the clients that it used with their prepared statements. */
async function preparedBy(work: () => Promise<void>) {
  const query = vi.spyOn(Client.prototype, 'query')
  for (let times = 0; times < 10; times += 1) await work()
  const clients = new Set(query.mock.contexts.filter((context) => context instanceof Client))
  query.mockRestore()
  return Promise.all(
    Array.from(clients, async (client) => {
      const { rows } = await client.query<Prepared>(
        'SELECT name, statement, cardinality(parameter_types) AS parameters, custom_plans::int4 AS custom FROM pg_prepared_statements',
      )
      return { client, statements: rows }
    }),
  )
}

test('a connection plans the statements that requests wait for only a few times', async () => {
  const { url, catalog, bucketId } = await openCatalog()
  const items = newItems(2_000).map((item, number) => ({
    ...item,
    ...(number % 3 === 0 && { expiresAt: Date.now() + 86_400_000 + number }),
    ...(number % 2 === 0 && { labels: { album: '42' } }),
  }))
  await catalog.addItems(bucketId, items.map(withBytes))
  await onServer(
    url,
    `INSERT INTO tokens (id, bucket_id, name, hash, scopes, created_at)
      SELECT 'tok_' || number, ${bucketId}, '', sha256(number::text::bytea), 'media:read', 0 FROM generate_series(1, 5000) AS number;
    ANALYZE`,
  )
  const list: ItemSelection = {
    ...{ bucketId, order: 'newest', kind: null, from: null, to: null, name: null },
  }
  const [item = newItem()] = items
  const found = await preparedBy(async () => {
    await readByKeys(catalog, bucketId, item)
    await catalog.addItems(bucketId, [withBytes(newItem())])
    await catalog.itemsAt(bucketId, 'newest', 100, 50)
    for (const after of [null, { seq: 1_000, createdAt: 0 }]) {
      await catalog.items(list, after, 51)
      await catalog.items({ ...list, order: 'oldest' }, after, 51)
      await catalog.items({ ...list, kind: 'image' }, after, 51)
      await catalog.items({ ...list, labels: { album: '42' } }, after, 51)
      await catalog.items({ ...list, name: ['harbour'] }, after, 51)
    }
  })
  expect(found).toHaveLength(2)
  const planned = found.flatMap(({ statements }) => statements.filter(({ custom }) => custom > 5))
  expect(planned.map(({ statement }) => statement)).toEqual([])
})

test('the plan of a small table does not read all of it after it has grown', async () => {
  const { catalog, bucketId } = await openCatalog()
  const item = newItem()
  await catalog.addItems(bucketId, [withBytes(item)])
  const [reads] = await preparedBy(() => readByKeys(catalog, bucketId, item))
  if (reads === undefined) throw new Error('no statement was sent')
  const byKeys = reads.statements.filter(({ statement }) => statement.includes('unnest('))
  expect(byKeys).toHaveLength(6)
  for (const { name, statement, parameters } of byKeys) {
    const values = Array.from({ length: parameters }, () => 'NULL').join(', ')
    const { rows } = await reads.client.query<{ 'QUERY PLAN': string }>(
      `EXPLAIN EXECUTE "${name}" (${values})`,
    )
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    expect(plan, statement).not.toMatch(/Seq Scan on (items|contents|tokens|buckets)/)
  }
})

test.each(itemOrders)(
  'a statement of a search reads rows of names in their order, and looks for the last one only if it ends early (%s)',
  async (order) => {
    const { catalog, bucketId } = await openCatalog()
    await catalog.addItems(
      bucketId,
      newItems(500).map((item, number) => withBytes({ ...item, filename: `clip ${number}` })),
    )
    const query = vi.spyOn(Client.prototype, 'query')
    await catalog.items({ bucketId, order, kind: null, from: null, to: null, name: ['clip'] }, null, 5)
    const client = query.mock.contexts.find((context) => context instanceof Client)
    const sent: unknown[] = query.mock.calls.map(([statement]) => statement)
    query.mockRestore()
    const begin = sent.find((statement) => typeof statement === 'string' && statement.startsWith('BEGIN'))
    const names = sent.find(isStatementOfNames)
    if (client === undefined || typeof begin !== 'string' || names === undefined) throw new Error('not sent')
    const planOf = async (term: string) => {
      await client.query(begin)
      const values = names.values.map((value) => (value === 'clip' ? term : value))
      const literals = values.map((value) => (value === null ? 'NULL' : `'${value}'`)).join(', ')
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(
        `EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE "${names.name}" (${literals})`,
      )
      await client.query('COMMIT')
      return rows.map((row) => row['QUERY PLAN']).join('\n')
    }
    const [full, empty] = [await planOf('clip'), await planOf('zebra')]
    expect(full).toMatch(/InitPlan.*never executed/s)
    expect(empty).not.toContain('never executed')
    for (const plan of [full, empty]) {
      expect(plan.match(/Index (Only )?Scan (Backward )?using item_names_pkey/g)).toHaveLength(2)
      expect(plan).not.toContain('Sort')
    }
  },
)

interface NamedStatement {
  readonly name: string
  readonly text: string
  readonly values: readonly unknown[]
}

const isStatementOfNames = (sent: unknown): sent is NamedStatement =>
  typeof sent === 'object' &&
  sent !== null &&
  'name' in sent &&
  'text' in sent &&
  'values' in sent &&
  `${sent.text}`.includes('UNION ALL')
