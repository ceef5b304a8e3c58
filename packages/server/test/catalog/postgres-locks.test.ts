import { Client } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { canUsePostgres } from '../../../../test/harness/postgres.ts'
import type { Change } from '../../src/catalog/changes.ts'
import { openPostgresAudit } from '../../src/catalog/postgres/audit.ts'
import { commitBatch } from '../../src/catalog/postgres/batch.ts'
import { openConnections } from '../../src/catalog/postgres/connections.ts'
import { parseDatabaseUrl } from '../../src/catalog/postgres/database-address.ts'
import type { BucketId } from '../../src/catalog/records.ts'
import { freshDatabase, openCatalog } from './postgres-database.ts'
import { allPages, inBlobStore, newBucket, newItem, newUpload } from './samples.ts'

/** Executes the statements in a transaction that stays open until the test ends. */
async function holdOpen(url: string, statements: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  await client.query(`BEGIN; ${statements}`)
}

describe.skipIf(!canUsePostgres)('PostgreSQL: locks', () => {
  test('a bucket that stays locked fails its own changes, not those of other buckets in the same batch', async () => {
    const url = await freshDatabase()
    const catalog = await openCatalog(url)
    const [locked, one, two] = [
      await newBucket(catalog, 'locked'),
      await newBucket(catalog, 'one'),
      await newBucket(catalog, 'two'),
    ]
    const [lockedUpload, upload] = [newUpload(locked), newUpload(two)]
    await catalog.createUpload(lockedUpload)
    await catalog.createUpload(upload)
    const connections = await openConnections(parseDatabaseUrl(url), { readers: 1, writers: 1 })
    onTestFinished(connections.close)
    await holdOpen(url, `SELECT FROM buckets WHERE id = ${locked} FOR UPDATE`)
    const item = newItem()
    const adding = (bucketId: BucketId, added = newItem()): Change => ({
      kind: 'add-media',
      input: { bucketId, items: inBlobStore([added]) },
    })
    const moving = ({ id, expiresAt }: typeof upload): Change => ({
      kind: 'move-upload',
      input: { id, from: 0, to: 10, expiresAt },
    })
    const changes = [adding(locked), adding(one, item), moving(lockedUpload), moving(upload), adding(locked)]
    const outcomes = await commitBatch(connections, changes, 100)
    const busy = { error: expect.objectContaining({ code: 'catalog-busy' }) }
    expect(outcomes).toEqual([busy, { output: undefined }, busy, { output: true }, busy])
    expect(await allPages(catalog, one)).toEqual([item.id])
    expect(await allPages(catalog, locked)).toEqual([])
  })

  test('ids are not retired while a VACUUM locks the media, and uploads do not wait for that', async () => {
    const url = await freshDatabase()
    const catalog = await openCatalog(url)
    const bucketId = await newBucket(catalog, 'b')
    const audit = await openPostgresAudit(url)
    onTestFinished(audit.close)
    const [item, other] = [newItem(), newItem()]
    await catalog.addIntents([item.id], 0)
    await holdOpen(url, 'LOCK TABLE media IN SHARE UPDATE EXCLUSIVE MODE')
    const busy = { code: 'catalog-busy' }
    const start = performance.now()
    await expect(catalog.retireIntents([item.id])).rejects.toMatchObject(busy)
    await expect(audit.retire([item.id])).rejects.toMatchObject(busy)
    await catalog.addMedia(bucketId, inBlobStore([other]))
    // Two locks that are waited for like any other take 20 seconds.
    expect(performance.now() - start).toBeLessThan(19_000)
    expect(await allPages(catalog, bucketId)).toEqual([other.id])
  })
})
