import { Client, DatabaseError as ServerError } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startCommitProxy } from '../../../../../test/harness/commit-proxy.ts'
import { onServer, rowsOf } from '../../../../../test/harness/postgres.ts'
import { until } from '../../../../../test/harness/until.ts'
import { ExplainedError } from '../../../src/core/faults.ts'
import {
  openConnections,
  parseDatabaseUrl,
  runTransaction,
} from '../../../src/storage/catalog/engines/postgres/connections.ts'
import {
  explainOpenError,
  migrate,
  openPostgresInspection,
} from '../../../src/storage/catalog/engines/postgres/postgres-database.ts'
import { commitBatch } from '../../../src/storage/catalog/engines/postgres/postgres-writer.ts'
import type { Write } from '../../../src/storage/catalog/nouns.ts'
import type { BucketId } from '../../../src/storage/catalog/records.ts'
import { tokenIdOf } from '../../../src/storage/catalog/statements.ts'
import { freshDatabase, openCatalog } from './postgres-database.ts'
import { allPages, hashOf, inBlobStore, newBucket, newItem, newUpload } from './samples.ts'

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

/** Executes the statements in a transaction that stays open until the test ends. */
async function holdOpen(url: string, statements: string): Promise<Client> {
  const client = await connect(url)
  await client.query(`BEGIN; ${statements}`)
  return client
}

/** A database with one bucket and one item. */
async function databaseOfThisVersion(): Promise<string> {
  const url = await freshDatabase()
  await openCatalog(url)
  await onServer(
    url,
    `INSERT INTO buckets (name, created_at) VALUES ('b', 1);
    INSERT INTO items (bucket_id, seq, id, content_type, size, sha256, created_at) VALUES (1, 0, 'first', 'text/plain', 1, '', 1)`,
  )
  return url
}

/** Upgrades the database as a server of a later version does. */
async function upgradeDatabase(url: string): Promise<void> {
  const address = parseDatabaseUrl(url)
  const connections = await openConnections(address, { readers: 1, writers: 1 })
  onTestFinished(() => connections.close())
  await migrate(connections, address.label, '', [
    { tables: ['items', 'buckets'], statements: 'ALTER TABLE items ADD COLUMN column_of_test int4' },
    { tables: ['items'], statements: 'UPDATE items SET column_of_test = size' },
  ])
}

const upgradedItem = async (url: string) => (await rowsOf(url, 'SELECT size, column_of_test FROM items'))[0]

/** The two halves of a transaction of a server of this version. */
const oldLock =
  'INSERT INTO batches (id) VALUES (gen_random_uuid()); SELECT FROM buckets WHERE id = 1 FOR UPDATE'
const oldChange = `UPDATE items SET size = size + 1 WHERE id = 'first';
  UPDATE buckets SET bytes = bytes + 1 WHERE id = 1; COMMIT`

/** Whether a process waits for the lock of a table, or between two attempts to lock it. */
async function isWaiting(url: string): Promise<boolean> {
  const waiting = `SELECT 1 FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event IN ('relation', 'PgSleep')`
  return (await rowsOf(url, waiting)).length > 0
}

const isBlocked = async (url: string): Promise<boolean> => {
  const blocked = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  return (await rowsOf(url, blocked)).length > 0
}

describe('PostgreSQL: locks', () => {
  test('a bucket that stays locked fails its own writes, not those of other buckets in the same batch', async () => {
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
    onTestFinished(() => connections.close())
    await holdOpen(url, `SELECT FROM buckets WHERE id = ${locked} FOR UPDATE`)
    const item = newItem()
    const adding = (bucketId: BucketId, added = newItem()): Write => ({
      kind: 'addItems',
      input: [bucketId, inBlobStore([added])],
    })
    const moving = ({ id, expiresAt }: typeof upload): Write => ({
      kind: 'moveUpload',
      input: [id, 0, 10, expiresAt],
    })
    const writes = [adding(locked), adding(one, item), moving(lockedUpload), moving(upload), adding(locked)]
    const outcomes = await commitBatch(connections, 0, writes, 100)
    const busy = { error: expect.objectContaining({ code: 'catalog-busy' }) }
    expect(outcomes).toEqual([busy, { output: undefined }, busy, { output: true }, busy])
    expect(await allPages(catalog, one)).toEqual([item.id])
    expect(await allPages(catalog, locked)).toEqual([])
  })

  test('I5 the sweep keeps the record of a key that was used again while the sweep waited for it', async () => {
    const url = await freshDatabase()
    const catalog = await openCatalog(url)
    const bucketId = await newBucket(catalog, 'b', 'camera')
    const now = Date.now()
    const keyed = { tokenId: tokenIdOf(['camera'], 0), key: 'daily', fingerprint: hashOf('daily') }
    const first = { ...keyed, now, expiresAt: now + 10 }
    await catalog.addItemsOnce(bucketId, inBlobStore([newItem()]), first)
    const proxy = await startCommitProxy(Number(new URL(url).port))
    onTestFinished(() => proxy[Symbol.asyncDispose]())
    const through = new URL(url)
    through.port = String(proxy.port)
    const other = await openCatalog(through.href)
    const holding = proxy.holdNext()
    const again = other.addItemsOnce(bucketId, inBlobStore([newItem()]), {
      ...keyed,
      now: now + 20,
      expiresAt: now + 1_000,
    })
    const held = await holding
    const forgotten = catalog.forgetRequests(now + 20)
    await until('the wait for the record', async () => await isBlocked(url))
    held.release()
    const stored = await again
    expect(await forgotten).toBe(0)
    expect(await catalog.findRepeated(bucketId, { ...keyed, now: now + 30, expiresAt: now })).toEqual(stored)
  })

  test('ids are not retired while a VACUUM locks the items, and uploads do not wait for that', async () => {
    const url = await freshDatabase()
    const catalog = await openCatalog(url)
    const bucketId = await newBucket(catalog, 'b')
    const inspection = await openPostgresInspection(url)
    onTestFinished(inspection.close)
    const [item, other] = [newItem(), newItem()]
    await catalog.addIntents([item.id], 0)
    await holdOpen(url, 'LOCK TABLE items IN SHARE UPDATE EXCLUSIVE MODE')
    const busy = { code: 'catalog-busy' }
    await expect(catalog.retireIntents([item.id])).rejects.toMatchObject(busy)
    await expect(inspection.retire([item.id])).rejects.toMatchObject(busy)
    // What both call has a timeout of its own: in this session, other locks are waited for without end.
    const patient = await connect(url)
    await patient.query('SET lock_timeout = 0; SET statement_timeout = 0')
    for (const retire of ['retire_intents', 'retire_ids'])
      await expect(patient.query(`SELECT ${retire}($1)`, [[item.id]]), retire).rejects.toMatchObject({
        code: '55P03',
      })
    await catalog.addItems(bucketId, inBlobStore([other]))
    expect(await allPages(catalog, bucketId)).toEqual([other.id])
  })

  test('O8 an upgrade gives way to a transaction of an earlier version that has locked a bucket, and then succeeds', async () => {
    const url = await databaseOfThisVersion()
    const old = await holdOpen(url, oldLock)
    const upgrade = upgradeDatabase(url)
    await until('the upgrade waits', () => isWaiting(url))
    await old.query(oldChange)
    await upgrade
    expect(await upgradedItem(url)).toEqual({ size: '2', column_of_test: 2 })
    await expect(openCatalog(url)).rejects.toThrow(/newer mediabucket/)
  })

  test('O8 an upgrade gives way to a reader that locks the tables in the other order', async () => {
    const url = await databaseOfThisVersion()
    const old = await holdOpen(url, 'SELECT count(*) FROM items')
    const upgrade = upgradeDatabase(url)
    await until('the upgrade waits', () => isWaiting(url))
    await old.query('SELECT count(*) FROM buckets')
    await old.query('COMMIT')
    await upgrade
  })

  test('O8 two servers upgrade a database under the load of servers of an earlier version, which see no error', async () => {
    const url = await databaseOfThisVersion()
    let [isUpgraded, writes] = [false, 0]
    const writers = Array.from({ length: 4 }, async () => {
      const client = await connect(url)
      while (!isUpgraded) {
        await client.query(`BEGIN; ${oldLock}`)
        await client.query(oldChange)
        writes += 1
      }
    })
    const readers = Array.from({ length: 2 }, async () => {
      const client = await connect(url)
      while (!isUpgraded)
        await client.query(
          'SELECT items.size, buckets.bytes FROM items JOIN buckets ON buckets.id = bucket_id',
        )
    })
    await until('the load', () => writes > 20)
    await Promise.all([upgradeDatabase(url), upgradeDatabase(url)])
    const before = writes
    await until('writes after the upgrade', () => writes > before + 20)
    isUpgraded = true
    await Promise.all([...writers, ...readers])
    expect((await upgradedItem(url))?.['size']).toBe(String(writes + 1))
  })

  test('O8 an upgrade that cannot get its locks is reported in one line', () => {
    for (const state of ['40P01', '57014', 'XX000']) {
      const error = Object.assign(new ServerError('deadlock detected', 0, 'error'), { code: state })
      expect(explainOpenError(error, 'media')).toBeInstanceOf(ExplainedError)
    }
  })

  test('O8 a command whose transaction is the victim of a deadlock runs it again', async () => {
    const connections = await openConnections(parseDatabaseUrl(await freshDatabase()), {
      readers: 1,
      writers: 1,
    })
    onTestFinished(() => connections.close())
    const victim = (code: string) => `DO $$ BEGIN RAISE EXCEPTION 'victim' USING ERRCODE = '${code}'; END $$`
    let left = 3
    const again = runTransaction(connections, async (session) => {
      left -= 1
      await session.execute(left > 0 ? victim('40P01') : 'CREATE TABLE done ()')
      return left
    })
    expect(await again).toBe(0)
    const busy = runTransaction(connections, (session) => session.execute(victim('40P01')))
    await expect(busy).rejects.toMatchObject({ code: 'catalog-busy' })
  })
})
