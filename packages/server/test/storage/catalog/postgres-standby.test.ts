import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startPgbouncer } from '../../../../../test/harness/pgbouncer.ts'
import {
  onServer,
  type PostgresServer,
  rowsOf,
  startPostgres,
  stopPostgres,
} from '../../../../../test/harness/postgres.ts'
import { startSwitchingProxy } from '../../../../../test/harness/switching-proxy.ts'
import { until } from '../../../../../test/harness/until.ts'
import type { Fault } from '../../../src/core/faults.ts'
import { DatabaseError } from '../../../src/storage/catalog/catalog.ts'
import { openPostgresCatalog } from '../../../src/storage/catalog/engines/postgres/postgres-catalog.ts'
import { openCatalog } from './postgres-database.ts'
import { allPages, hashOf, newBucket, newItem, withBytes } from './samples.ts'

const unreachable: Partial<Fault> = { name: 'Fault', code: 'catalog-unavailable' }

describe('PostgreSQL with a standby', () => {
  const directories: string[] = []
  let primary: PostgresServer
  let standby: PostgresServer

  async function start(port?: number): Promise<PostgresServer> {
    const directory = await mkdtemp(join(tmpdir(), 'mediabucket-postgres-'))
    directories.push(directory)
    return startPostgres(directory, {}, port)
  }

  beforeAll(async () => {
    primary = await start()
    standby = await start(primary.port)
  })

  afterAll(async () => {
    for (const directory of directories) {
      await stopPostgres(directory)
      await rm(directory, { recursive: true, force: true })
    }
  })

  /** The URL of a new database, on the primary or through this port. */
  async function newDatabase(name: string): Promise<(port?: number) => string> {
    await onServer(primary.url('postgres'), `CREATE DATABASE ${name}`)
    return (port = primary.port) => Object.assign(new URL(primary.url(name)), { port: String(port) }).href
  }

  /** Waits until the standby has all rows. */
  async function replicate(): Promise<void> {
    const [row] = await rowsOf(primary.url('postgres'), 'SELECT pg_current_wal_lsn()::text AS lsn')
    await until('the standby', async () => {
      const statement = `SELECT pg_last_wal_replay_lsn() >= '${String(row?.['lsn'])}' AS done`
      return (await rowsOf(standby.url('postgres'), statement))[0]?.['done'] === true
    })
  }

  test('after a switch to a replica nothing is read or written there; after the switch back all works', async () => {
    const url = await newDatabase('switched')
    await using proxy = await startSwitchingProxy(primary.port)
    const catalog = await openCatalog(url(proxy.port))
    const bucketId = await newBucket(catalog, 'b')
    const [first, refused, last] = [newItem(), newItem(), newItem()]
    await catalog.addItems(bucketId, [withBytes(first)])
    await replicate()

    proxy.switchTo(standby.port)
    await expect(catalog.page(bucketId, 1)).rejects.toMatchObject(unreachable)
    await expect(catalog.findGrant(hashOf('b'))).rejects.toMatchObject(unreachable)
    await expect(catalog.addItems(bucketId, [withBytes(refused)])).rejects.toMatchObject(unreachable)
    const opened = openPostgresCatalog({ url: url(standby.port), role: 'server' })
    await expect(opened).rejects.toThrow(DatabaseError)
    await expect(opened).rejects.toThrow(/read-only replica/)

    proxy.switchTo(primary.port)
    expect(await catalog.findGrant(hashOf('b'))).toMatchObject({ bucketId, total: 1 })
    await catalog.addItems(bucketId, [withBytes(last)])
    expect(await allPages(catalog, bucketId)).toEqual([first.id, last.id])
  })

  test('a replica that has not replayed the creation of the database does not keep the service from opening it', async () => {
    await replicate()
    await onServer(standby.url('postgres'), 'SELECT pg_wal_replay_pause()')
    try {
      const url = await newDatabase('not_replayed')
      await expect(openCatalog(url(standby.port))).rejects.toThrow(/does not exist/)
      const both = new URL(url())
      const hosts = [standby, primary].map(({ port }) => `127.0.0.1:${port}`).join(',')
      const catalog = await openCatalog(both.href.replace(both.host, hosts))
      const bucketId = await newBucket(catalog, 'b')
      expect(await catalog.findGrant(hashOf('b'))).toMatchObject({ bucketId })
    } finally {
      await onServer(standby.url('postgres'), 'SELECT pg_wal_replay_resume()')
    }
  })

  test('behind pgbouncer a replica finds no grant', async () => {
    const url = await newDatabase('pooled')
    await using proxy = await startSwitchingProxy(primary.port)
    await using pooler = await startPgbouncer(url(proxy.port))
    const catalog = await openCatalog(pooler.url)
    const bucketId = await newBucket(catalog, 'b')
    await replicate()
    proxy.switchTo(standby.port)
    for (const name of ['b', 'unknown'])
      await expect(catalog.findGrant(hashOf(name))).rejects.toMatchObject(unreachable)
    proxy.switchTo(primary.port)
    expect(await catalog.findGrant(hashOf('b'))).toMatchObject({ bucketId })
  })

  test.each([
    ['the connection is lost', 'pg_terminate_backend'],
    // As statement_timeout does: the server then reports success with a warning.
    ['the wait is cancelled', 'pg_cancel_backend'],
  ])('if %s, a commit is acknowledged when a synchronous standby has it', async (_, interrupt) => {
    const name = `synchronous_${interrupt}`
    const url = await newDatabase(name)
    const catalog = await openCatalog(url())
    const bucketId = await newBucket(catalog, 'b')
    /** The backend that waits for the standby, other than this one. */
    const waiting = async (other = 0) => {
      const statement = `SELECT pid FROM pg_stat_activity
        WHERE datname = '${name}' AND wait_event = 'SyncRep' AND pid <> ${other}`
      return Number((await rowsOf(primary.url('postgres'), statement))[0]?.['pid'] ?? 0)
    }
    await onServer(primary.url('postgres'), "ALTER SYSTEM SET synchronous_standby_names = '*'")
    await onServer(primary.url('postgres'), 'SELECT pg_reload_conf()')
    await standby.control('-m', 'fast', 'stop')
    const item = newItem()
    const added = catalog.addItems(bucketId, [withBytes(item)])
    let isAdded = false
    void added.finally(() => {
      isAdded = true
    })
    await until('the commit', async () => (await waiting()) > 0)
    const backend = await waiting()
    await onServer(primary.url('postgres'), `SELECT ${interrupt}(${backend})`)
    await until('the resolution', async () => isAdded || (await waiting(backend)) > 0)
    expect(isAdded).toBe(false)
    await standby.control('start')
    await added
    expect(await allPages(catalog, bucketId)).toEqual([item.id])
  })

  test('with the URLs of both servers, the primary is used; after its end and a promotion, the other one', async () => {
    const url = await newDatabase('failover')
    await replicate()
    const both = url().replace(/:\d+\//, `:${standby.port},127.0.0.1:${primary.port}/`)
    const [catalog, idle] = [
      await openCatalog(both),
      await openCatalog(`${both}?target_session_attrs=read-write`),
    ]
    const bucketId = await newBucket(catalog, 'b')
    const [first, refused, last] = [newItem(), newItem(), newItem()]
    await catalog.addItems(bucketId, [withBytes(first)])
    await replicate()

    await primary.control('-m', 'immediate', 'stop')
    await expect(catalog.page(bucketId, 1)).rejects.toMatchObject(unreachable)
    await expect(catalog.addItems(bucketId, [withBytes(refused)])).rejects.toMatchObject(unreachable)
    await expect(openPostgresCatalog({ url: both, role: 'server' })).rejects.toThrow(
      `127.0.0.1:${standby.port},127.0.0.1:${primary.port}/failover cannot be opened`,
    )

    await onServer(standby.url('postgres'), 'SELECT pg_promote()')
    await catalog.addItems(bucketId, [withBytes(last)])
    expect(await idle.findGrant(hashOf('b'))).toMatchObject({ bucketId, total: 2 })
    expect(await allPages(idle, bucketId)).toEqual([first.id, last.id])
    const opened = await openCatalog(both)
    expect(await allPages(opened, bucketId)).toEqual([first.id, last.id])

    // The former primary runs again, and accepts writes.
    await primary.control('start')
    const formerFirst = url().replace(/:\d+\//, `:${primary.port},127.0.0.1:${standby.port}/`)
    const later = await openCatalog(formerFirst)
    const more = newItem()
    await later.addItems(bucketId, [withBytes(more)])
    const statement =
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mediabucket'"
    await onServer(standby.url('postgres'), statement)
    for (const one of [catalog, later])
      expect(await allPages(one, bucketId)).toEqual([first.id, last.id, more.id])
    expect(await rowsOf(primary.url('failover'), 'SELECT id FROM items')).toEqual([{ id: first.id }])
  })
})
