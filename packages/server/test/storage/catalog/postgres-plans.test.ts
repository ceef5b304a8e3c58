import { Client } from 'pg'
import { expect, onTestFinished, test, vi } from 'vitest'
import { onServer } from '../../../../../test/harness/postgres.ts'
import { openPostgresCatalog } from '../../../src/storage/catalog/postgres/catalog.ts'
import type { ItemSelection } from '../../../src/storage/catalog/records.ts'
import { freshCatalog } from './postgres-database.ts'
import { hashOf, inBlobStore, newBucket, newItem, newItems, withBytes } from './samples.ts'

// PostgreSQL plans a prepared statement for its values five times. Then it compares the costs, and may do so for each execution.
test('a connection plans the statements that requests wait for only a few times', async () => {
  const url = await freshCatalog()
  const catalog = await openPostgresCatalog({ url, role: 'command' })
  onTestFinished(() => catalog.close())
  const bucketId = await newBucket(catalog, 'plans')
  const items = newItems(2_000).map((item, number) => ({
    ...item,
    ...(number % 3 === 0 && { expiresAt: Date.now() + 86_400_000 + number }),
    ...(number % 2 === 0 && { labels: { album: '42' } }),
  }))
  await catalog.addItems(bucketId, items.slice(0, -1).map(withBytes))
  await catalog.addItems(bucketId, inBlobStore(items.slice(-1)))
  await onServer(url, 'ANALYZE')
  const list: ItemSelection = {
    ...{ bucketId, order: 'newest', kind: null, from: null, to: null, name: null },
  }
  const place = { seq: 1_000, createdAt: 0 }
  const client = vi.spyOn(Client.prototype, 'query')
  for (const { id } of items.slice(0, 10)) {
    const item = await catalog.item(id)
    if (item?.contentId == null) throw new Error('an item has no bytes')
    await catalog.content(item.contentId)
    await catalog.findGrant(hashOf('plans'))
    await catalog.page(bucketId, 3)
    await catalog.bucket(bucketId)
    await catalog.addItems(bucketId, [withBytes(newItem())])
    await catalog.itemsAt(bucketId, 'newest', 100, 50)
    for (const after of [null, place]) {
      await catalog.items(list, after, 51)
      await catalog.items({ ...list, order: 'oldest' }, after, 51)
      await catalog.items({ ...list, kind: 'image' }, after, 51)
      await catalog.items({ ...list, labels: { album: '42' } }, after, 51)
      await catalog.items({ ...list, name: ['harbour'] }, after, 51)
    }
  }
  // One for reads, and one for changes.
  const clients = new Set(client.mock.contexts.filter((context) => context instanceof Client))
  client.mockRestore()
  expect(clients.size).toBe(2)
  const planned = await Promise.all(
    Array.from(clients, (one) =>
      one.query<{ statement: string }>('SELECT statement FROM pg_prepared_statements WHERE custom_plans > 5'),
    ),
  )
  const rows = planned.flatMap((result) => result.rows)
  expect(rows.map(({ statement }) => statement)).toEqual([])
})
