import { Client } from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../../../../test/harness/postgres.ts'
import { until } from '../../../../../test/harness/until.ts'
import { openPostgresCatalog } from '../../../src/storage/catalog/engines/postgres/postgres-catalog.ts'
import type { BucketId } from '../../../src/storage/catalog/records.ts'
import { newBucket } from './samples.ts'

// F12: what such a transaction adds must not be removed as unknown bytes.
test.each([
  [
    'has added an item',
    (bucketId: BucketId) => `INSERT INTO items (bucket_id, seq, id, content_type, size, sha256, created_at)
      VALUES (${bucketId}, 0, 'left', 'text/plain', 1, '', 1)`,
  ],
  // As postgres-writer.ts begins each transaction. The statements that follow can still be on the network.
  ['has only begun', () => 'INSERT INTO batches (id) VALUES (gen_random_uuid())'],
])('a start waits for a transaction that an ended process has left, and that %s', async (_, statementOf) => {
  const { url, release } = await createDatabase()
  onTestFinished(release)
  const catalog = await openPostgresCatalog({ url, role: 'command' })
  onTestFinished(() => catalog.close())
  const bucketId = await newBucket(catalog, 'b')
  const left = new Client({ connectionString: url })
  await left.connect()
  onTestFinished(() => left.end())
  await left.query(`BEGIN; ${statementOf(bucketId)}`)

  let isSettled = false
  const settled = catalog.awaitEarlierWrites().then(() => {
    isSettled = true
  })
  await until('the catalog waits for a lock', async () => {
    const { rows } = await left.query('SELECT 1 FROM pg_locks WHERE NOT granted')
    return rows.length > 0 || isSettled
  })
  expect(isSettled).toBe(false)
  await left.query('COMMIT')
  await settled
})
