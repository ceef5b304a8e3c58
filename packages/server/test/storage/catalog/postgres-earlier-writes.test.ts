import { Client } from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../../../../test/harness/postgres.ts'
import { until } from '../../../../../test/harness/until.ts'
import { openPostgresCatalog } from '../../../src/storage/catalog/engines/postgres/postgres-catalog.ts'
import { newBucket } from './samples.ts'

test('a start waits for a transaction that an ended process has left', async () => {
  const { url, release } = await createDatabase()
  onTestFinished(release)
  const catalog = await openPostgresCatalog({ url, role: 'command' })
  onTestFinished(() => catalog.close())
  const bucketId = await newBucket(catalog, 'b')
  const left = new Client({ connectionString: url })
  await left.connect()
  onTestFinished(() => left.end())
  await left.query(`BEGIN; INSERT INTO items (bucket_id, seq, id, content_type, size, sha256, created_at)
    VALUES (${bucketId}, 0, 'left', 'text/plain', 1, '', 1)`)

  let isSettled = false
  const settled = catalog.awaitEarlierWrites().then(() => {
    isSettled = true
  })
  await until('the catalog waits for a lock', async () => {
    const { rows } = await left.query('SELECT 1 FROM pg_locks WHERE NOT granted')
    return rows.length > 0
  })
  expect(isSettled).toBe(false)
  await left.query('COMMIT')
  await settled
})
