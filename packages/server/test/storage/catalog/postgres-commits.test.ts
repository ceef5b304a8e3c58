import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type CommitFault, startCommitProxy } from '../../../../../test/harness/commit-proxy.ts'
import { onServer, rowsOf, startPostgres, stopPostgres } from '../../../../../test/harness/postgres.ts'
import { until } from '../../../../../test/harness/until.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import { openPostgresCatalog } from '../../../src/storage/catalog/engines/postgres/postgres-catalog.ts'
import { openPostgresInspection } from '../../../src/storage/catalog/engines/postgres/postgres-database.ts'
import { freshDatabase, openCatalog, openSeveral } from './postgres-database.ts'
import { allPages, inBlobStore, newBucket, newItem, newItems, newUpload, withBytes } from './samples.ts'

async function expectNoFaults(url: string): Promise<void> {
  const inspection = await openPostgresInspection(url)
  try {
    expect(await inspection.bucketFaults()).toEqual([])
    expect(await inspection.orphanedContents()).toEqual([])
  } finally {
    await inspection.close()
  }
}

/** The ids of items whose addition was acknowledged, refused, or neither. */
async function settle(additions: readonly { readonly id: string; readonly added: Promise<void> }[]) {
  const [acknowledged, refused, unknown]: [string[], string[], string[]] = [[], [], []]
  for (const { id, added } of additions) {
    const list = await added.then(
      () => acknowledged,
      (error: { code?: string }) => (error.code === 'catalog-unavailable' ? refused : unknown),
    )
    list.push(id)
  }
  return { acknowledged, refused, unknown }
}

/** Adds items one after another, on each catalog, until `isDone`. */
function addContinuously(
  catalogs: readonly Catalog[],
  bucketId: Parameters<Catalog['addItems']>[0],
  isDone: () => boolean,
) {
  const additions: { id: string; added: Promise<void> }[] = []
  const clients = catalogs.flatMap((catalog) => [catalog, catalog, catalog])
  const finished = clients.map(() => 0)
  const works = clients.map(async (catalog, client) => {
    for (; !isDone(); finished[client] = (finished[client] ?? 0) + 1) {
      const item = newItem()
      const added = catalog.addItems(bucketId, [withBytes(item)])
      additions.push({ id: item.id, added })
      await added.catch(() => undefined)
    }
  })
  /** Resolves when each client has finished two further additions. */
  const furtherItems = () => {
    const wanted = finished.map((count) => count + 2)
    return until('further items', () => finished.every((count, client) => count >= (wanted[client] ?? 0)))
  }
  return { additions, furtherItems, ended: Promise.all(works) }
}

describe('PostgreSQL: commits', () => {
  test('L4, L10 writers of several processes: a number is never seen before the one below it, and totals are exact', async () => {
    const url = await freshDatabase()
    const catalogs = await openSeveral(url, 4)
    const [first = null] = catalogs
    if (first === null) throw new Error('no catalog')
    const bucketId = await newBucket(first, 'b')
    let writing = true
    const requests = Array.from({ length: 200 }, (_, index) => newItems(1 + (index % 4)))
    const writes = Promise.all(
      requests.map((items, index) => catalogs[index % 4]?.addItems(bucketId, inBlobStore(items))),
    ).finally(() => {
      writing = false
    })
    while (writing) {
      const [seen] = await rowsOf(
        url,
        'SELECT count(*)::int4 AS count, coalesce(max(seq) + 1, 0)::int4 AS next FROM items',
      )
      expect(seen?.['count']).toBe(seen?.['next'])
    }
    await writes
    const listed = await allPages(first, bucketId)
    expect(listed.toSorted()).toEqual(
      requests
        .flat()
        .map(({ id }) => id)
        .toSorted(),
    )
    for (const items of requests) expect(listed.join()).toContain(items.map(({ id }) => id).join())
    await expectNoFaults(url)
  })

  test('L10 writers of several processes add and delete in several buckets without deadlocks', async () => {
    const url = await freshDatabase()
    const catalogs = await openSeveral(url, 3)
    const [first] = catalogs
    if (!first) throw new Error('no catalog')
    const buckets = await Promise.all(['a', 'b', 'c', 'd'].map((name) => newBucket(first, name)))
    const kept = new Map(buckets.map((id) => [id, [] as string[]]))
    await Promise.all(
      Array.from({ length: 240 }, async (_, index) => {
        const [catalog, bucketId] = [catalogs[index % 3], buckets[(index >> 2) % 4]]
        if (!catalog || bucketId === undefined) throw new Error('no catalog')
        const [item, gone] = [newItem(), newItem()]
        await catalog.addItems(bucketId, [withBytes(item), withBytes(gone)])
        kept.get(bucketId)?.push(item.id)
        expect((await catalog.removeItems(bucketId, [gone.id])).ids).toEqual([gone.id])
      }),
    )
    for (const [bucketId, ids] of kept)
      expect((await allPages(first, bucketId)).toSorted()).toEqual(ids.toSorted())
    await expectNoFaults(url)
  })

  test.each<CommitFault>(['response lost', 'request lost', 'late'])(
    'an item is stored once if the connection is lost during the commit: %s',
    async (fault) => {
      const url = await freshDatabase()
      await using proxy = await startCommitProxy(Number(new URL(url).port))
      const through = new URL(url)
      through.port = String(proxy.port)
      const catalog = await openCatalog(through.href)
      const bucketId = await newBucket(catalog, 'b')
      const item = newItem()
      proxy.breakNext(fault)
      const added = catalog.addItems(bucketId, [withBytes(item)])
      await until('the broken commit', () => proxy.broken() === 1)
      if (fault === 'late') {
        // The resolution waits for the transaction, which still is in progress.
        await until('the resolution', async () => {
          const waiting = await rowsOf(
            url,
            "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
          )
          return waiting.length === 1
        })
        proxy.sendLate()
      }
      await added
      expect(await allPages(catalog, bucketId)).toEqual([item.id])
      const [batches] = await rowsOf(url, 'SELECT count(*)::int4 AS count FROM batches WHERE is_cancelled')
      expect(batches?.['count']).toBe(fault === 'request lost' ? 1 : 0)
      await expectNoFaults(url)
    },
  )

  test('R6 pieces of uploads count for the size of a transaction', async () => {
    let commits = 0
    const count = () => {
      commits += 1
    }
    const catalog = await openPostgresCatalog({ url: await freshDatabase(), role: 'server', onCommit: count })
    onTestFinished(() => catalog.close())
    const bucketId = await newBucket(catalog, 'b')
    const piece = new Uint8Array(5 * 1024 * 1024)
    const length = piece.byteLength
    const uploads = Array.from({ length: 4 }, () => newUpload(bucketId, { length: length + 1 }))
    for (const upload of uploads) await catalog.createUpload(upload)
    commits = 0
    const move = { from: 0, to: length, expiresAt: 1_000 }
    const stored = uploads.map(({ id }) => catalog.storeParts(id, { parts: [], piece }, move))
    expect(await Promise.all(stored)).toEqual([true, true, true, true])
    expect(commits).toBe(4)
  })

  test('every acknowledged item is stored once while backends are terminated', async () => {
    const url = await freshDatabase()
    const catalogs = await openSeveral(url, 2)
    const [catalog] = catalogs
    if (!catalog) throw new Error('no catalog')
    const bucketId = await newBucket(catalog, 'b')
    let isDone = false
    const { additions, furtherItems, ended } = addContinuously(catalogs, bucketId, () => isDone)
    for (let round = 1; round <= 25; round += 1) {
      // So an addition meets at most one of the terminations, which its retries survive.
      await furtherItems()
      await onServer(
        url,
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()`,
      )
    }
    isDone = true
    await ended
    const { acknowledged, refused, unknown } = await settle(additions)
    const listed = await allPages(catalog, bucketId)
    expect(unknown).toEqual([])
    expect(refused).toEqual([])
    expect(listed.toSorted()).toEqual(acknowledged.toSorted())
    await expectNoFaults(url)
  })

  test('reads and writes work again after restarts of the server, and every acknowledged item is stored once', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'mediabucket-postgres-'))
    onTestFinished(async () => {
      await stopPostgres(directory)
      await rm(directory, { recursive: true, force: true })
    })
    const server = await startPostgres(directory, { fsync: 'on' })
    const url = server.url('postgres')
    const catalog = await openCatalog(url)
    const bucketId = await newBucket(catalog, 'b')
    let isDone = false
    const { additions, furtherItems, ended } = addContinuously([catalog], bucketId, () => isDone)
    for (let round = 1; round <= 2; round += 1) {
      await furtherItems()
      await server.control('-m', 'immediate', 'restart')
      await until('a read', () =>
        catalog.page(bucketId, 1).then(
          () => true,
          () => false,
        ),
      )
      await until('a write', () =>
        catalog.checkWrites().then(
          () => true,
          () => false,
        ),
      )
    }
    isDone = true
    await ended
    const { acknowledged, refused, unknown } = await settle(additions)
    const listed = await allPages(catalog, bucketId)
    expect(unknown).toEqual([])
    expect(listed.filter((id) => refused.includes(id))).toEqual([])
    expect(listed.toSorted()).toEqual(acknowledged.toSorted())
    await expectNoFaults(url)
  })

  test('a third level of ranks is added when the numbers need it', async () => {
    const url = await freshDatabase()
    const catalog = await openCatalog(url)
    const bucketId = await newBucket(catalog, 'b')
    const items = newItems(90)
    await catalog.addItems(bucketId, inBlobStore(items.slice(0, 50)))
    await onServer(url, 'UPDATE buckets SET next_seq = 1048566')
    const inspection = await openPostgresInspection(url)
    // Adds the second level and the lines of names, which the number needs.
    expect((await inspection.recount()).map(({ what }) => what)).toEqual(['ranks', 'names'])
    await inspection.close()
    await catalog.addItems(bucketId, inBlobStore(items.slice(50)))
    const [gone, ...kept] = items
    if (!gone) throw new Error('no item')
    await catalog.removeItems(bucketId, [gone.id])
    const [levels] = await rowsOf(url, 'SELECT max(level) AS top FROM ranks')
    expect(levels?.['top']).toBe(3)
    expect(await allPages(catalog, bucketId)).toEqual(kept.map(({ id }) => id))
    await expectNoFaults(url)
  })
})
