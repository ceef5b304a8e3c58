import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { seededRandom } from '../../../../../test/harness/random.ts'
import { service } from '../../../src/core/token-rules.ts'
import { readEvents } from '../../../src/storage/catalog/audit/audit-log.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import { openSqliteAuditLog } from '../../../src/storage/catalog/engines/sqlite/sqlite-audit-log.ts'
import { openSqliteCatalog } from '../../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { one, openConnection } from '../../../src/storage/catalog/engines/sqlite/sqlite-database.ts'
import type { BucketId } from '../../../src/storage/catalog/records.ts'
import { integer } from '../../../src/storage/catalog/statements.ts'
import { describeAuditLog } from './audit-log-contract.ts'
import { describeCatalog, describeThreads } from './catalog-contract.ts'
import { allPages, inBlobStore, newBucket, newItem, newItems } from './samples.ts'
import { tempDirectory } from './temp-directory.ts'

const freshWith = (writer: 'thread' | 'direct') => async () => {
  const directory = join(tempDirectory(), 'data')
  return { open: () => openSqliteCatalog({ directory, writer }) }
}
describeCatalog('SQLite, direct writer', freshWith('direct'))
describeThreads('SQLite, thread writer', freshWith('thread'))

describeAuditLog('SQLite', async () => {
  const directory = join(tempDirectory(), 'data')
  return {
    open: (actor) => openSqliteCatalog({ directory, writer: 'thread', actor }),
    openLog: () => openSqliteAuditLog(directory),
  }
})

/** A bucket without items, and the audit log. */
async function openedLog() {
  const directory = join(tempDirectory(), 'data')
  const catalog = await openSqliteCatalog({ directory, writer: 'direct', actor: service })
  const log = await openSqliteAuditLog(directory)
  onTestFinished(async () => {
    await log.close()
    await catalog.close()
  })
  const bucketId = await newBucket(catalog, 'b')
  return { catalog, log, bucketId }
}

test('Y5 the events of a range of times are found, however far the clock was ahead when earlier ones were recorded', async () => {
  const { catalog, log, bucketId } = await openedLog()
  const random = seededRandom()
  const day = 86_400_000
  const start = Date.now()
  const steps = [0, 1_000, day, 10 * day, 400 * day, 36_500 * day, 80_000 * day]
  const recorded: { readonly target: string; readonly time: number }[] = []
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  for (let event = 0; event < 60; event += 1) {
    const time = start + event * 1_000 + (steps[random(steps.length)] ?? 0)
    vi.setSystemTime(time)
    await catalog.recordEvents([{ action: 'link', by: service, bucketId, target: `${event}` }])
    recorded.push({ target: `${event}`, time })
  }
  const times = [null, ...recorded.map(({ time }) => time)]
  for (let range = 0; range < 200; range += 1) {
    const [since = null, until = null] = [times[random(times.length)], times[random(times.length)]]
    const found: (string | null)[] = []
    const filter = { since, until, buckets: null, target: null, tokenId: null, action: 'link' } as const
    for await (const batch of readEvents(log, filter, null)) found.push(...batch.map(({ target }) => target))
    const expected = recorded.filter(({ time }) => time >= (since ?? 0) && time < (until ?? Number.MAX_VALUE))
    expect(found, `from ${since} to ${until}`).toEqual(expected.map(({ target }) => target))
  }
})

test('Y9 a search in thousands of events leaves other work its turns, and goes on after what it has looked at', async () => {
  const { catalog, log, bucketId } = await openedLog()
  const downloads = Array.from({ length: 5_000 }, () => ({
    ...({ action: 'download', by: service, bucketId, target: 'one' } as const),
  }))
  await catalog.recordEvents(downloads)
  const filter = {
    since: null,
    until: null,
    buckets: null,
    target: null,
    tokenId: null,
    action: 'upload',
  } as const
  async function turnsOf(after: string | null) {
    let turns = 0
    let next: string | null = null
    const reading = log.read(filter, after, 10).then((batch) => {
      next = batch.next
    })
    for (; next === null; turns += 1) await setImmediate()
    await reading
    return { turns, next }
  }
  const first = await turnsOf(null)
  expect(first.turns).toBeGreaterThanOrEqual(5)
  expect((await turnsOf(first.next)).turns).toBeLessThan(3)
})

test('Y9 a search for the events of many buckets of one name takes about as long as one of all events', async () => {
  const { catalog, log } = await openedLog()
  const buckets = Array.from({ length: 100 }, (_, index) => (index + 10) as BucketId)
  const downloads = Array.from({ length: 10_000 }, (_, index) => ({
    ...({ action: 'download', by: service, target: 'one' } as const),
    bucketId: buckets[index % buckets.length] ?? null,
  }))
  await catalog.recordEvents(downloads)
  const none = { since: null, until: null, target: null, tokenId: null, action: 'upload' } as const
  async function timeOf(selected: readonly BucketId[] | null): Promise<number> {
    const start = performance.now()
    expect((await log.read({ ...none, buckets: selected }, null, 10)).events).toEqual([])
    return performance.now() - start
  }
  /** The least of several, because the machine may be busy. */
  async function leastTimeOf(selected: readonly BucketId[] | null): Promise<number> {
    let least = Number.POSITIVE_INFINITY
    for (let tries = 0; tries < 5; tries += 1) least = Math.min(least, await timeOf(selected))
    return least
  }
  expect(await leastTimeOf(buckets)).toBeLessThan(5 * (await leastTimeOf(null)) + 100)
})

test('O8 a missing index is named, with what to do, and what was opened is closed', async () => {
  const directory = join(tempDirectory(), 'data')
  await (await openSqliteCatalog({ directory, writer: 'direct' })).close()
  const db = openConnection(directory)
  db.exec('DROP INDEX items_renamed')
  db.close()
  await expect(openSqliteCatalog({ directory, writer: 'thread' })).rejects.toMatchObject({
    name: 'CatalogVersionError',
    message: expect.stringMatching(/"items_renamed" differs.*Make a backup/),
  })
  // SQLite removes the log when the last connection closes.
  expect(existsSync(join(directory, 'catalog.db-wal'))).toBe(false)
})

async function openThread(directory: string, onWriterFailure?: (error: Error) => void) {
  let worker: Worker | undefined
  process.once('worker', (started: Worker) => {
    worker = started
  })
  const failure = onWriterFailure && { onWriterFailure }
  const catalog = await openSqliteCatalog({ directory, writer: 'thread', ...failure })
  onTestFinished(() => catalog.close())
  if (!worker) throw new Error('no writer thread was started')
  return { catalog, worker }
}

async function openDirect(directory: string): Promise<Catalog> {
  const catalog = await openSqliteCatalog({ directory, writer: 'direct' })
  onTestFinished(() => catalog.close())
  return catalog
}

describe('SQLite: files', () => {
  test('the data directory is accessible only to its owner', async () => {
    const directory = join(tempDirectory(), 'deep', 'data')
    await openDirect(directory)
    expect(statSync(directory).mode & 0o777).toBe(0o700)
  })

  test('commits are synced: WAL with synchronous FULL', () => {
    const db = openConnection(tempDirectory())
    onTestFinished(() => db.close())
    const pragma = (name: string) => one(db.prepare(`PRAGMA ${name}`))
    expect([pragma('journal_mode'), pragma('synchronous'), pragma('foreign_keys')]).toEqual([
      ['wal'],
      [2],
      [1],
    ])
  })

  test('reads leave no snapshot open: a checkpoint after each completes', async () => {
    const directory = tempDirectory()
    const catalog = await openDirect(directory)
    const bucketId = await newBucket(catalog, 'b')
    const item = newItem()
    await catalog.addItems(bucketId, inBlobStore([item, ...newItems(30)]))
    const db = openConnection(directory)
    onTestFinished(() => db.close())
    const reads = [
      () => catalog.page(bucketId, 2),
      () => catalog.page(bucketId, 99),
      () => catalog.page(-1 as never, 1).catch(() => null),
      () => catalog.item(item.id),
      () => catalog.listTokens(),
      () => catalog.listTombstones(),
    ]
    for (const read of reads) {
      await read()
      await catalog.addItems(bucketId, inBlobStore(newItems(1)))
      const row = one(db.prepare('PRAGMA wal_checkpoint(TRUNCATE)')) ?? []
      expect(integer(row, 0), 'a snapshot keeps the log').toBe(0)
    }
  })

  test('a write that waits too long for another process is catalog-busy', async () => {
    const directory = tempDirectory()
    const catalog = await openDirect(directory)
    const bucketId = await newBucket(catalog, 'b')
    const db = openConnection(directory)
    onTestFinished(() => db.close())
    db.exec('BEGIN IMMEDIATE')
    let now = 0
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => {
      now += 1_000
      return now
    })
    onTestFinished(() => clock.mockRestore())
    await expect(catalog.addItems(bucketId, inBlobStore(newItems(1)))).rejects.toMatchObject({
      name: 'Fault',
      code: 'catalog-busy',
      cause: undefined,
    })
    db.exec('ROLLBACK')
    await catalog.addItems(bucketId, inBlobStore(newItems(1)))
    expect(await allPages(catalog, bucketId)).toHaveLength(1)
  })
})

describe('SQLite: the writer thread', () => {
  test('pending changes share a commit', async () => {
    const directory = tempDirectory()
    const { catalog } = await openThread(directory)
    const bucketId = await newBucket(catalog, 'b')
    await Promise.all(newItems(300).map((item) => catalog.addItems(bucketId, inBlobStore([item]))))
    // Alone, each would write four pages or more: items, its index, ranks and buckets.
    const pages = statSync(join(directory, 'catalog.db-wal')).size / 4_096
    expect(pages).toBeLessThan(300)
    expect(await allPages(catalog, bucketId)).toHaveLength(300)
  })

  test('changes that arrive one by one while it waits share a commit', async () => {
    const directory = tempDirectory()
    const { catalog } = await openThread(directory)
    const bucketId = await newBucket(catalog, 'b')
    const db = openConnection(directory)
    onTestFinished(() => db.close())
    const before = statSync(join(directory, 'catalog.db-wal')).size
    db.exec('BEGIN IMMEDIATE')
    const adds: Promise<void>[] = []
    for (const item of newItems(60)) {
      adds.push(catalog.addItems(bucketId, inBlobStore([item])))
      await setImmediate()
    }
    db.exec('ROLLBACK')
    await Promise.all(adds)
    const pages = (statSync(join(directory, 'catalog.db-wal')).size - before) / 4_096
    expect(pages).toBeLessThan(60)
  })

  test('a change that fails does not fail the others', async () => {
    const { catalog } = await openThread(tempDirectory())
    const bucketId = await newBucket(catalog, 'b')
    const item = newItem()
    const requests = [[item], [newItem(), item], newItems(2), [newItem()]]
    const results = await Promise.allSettled(
      requests.map((items) => catalog.addItems(bucketId, inBlobStore(items))),
    )
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
    const wanted = [requests[0], requests[2], requests[3]].flat().map((listed) => listed?.id)
    expect(await allPages(catalog, bucketId)).toEqual(wanted)
  })

  test('when it ends unexpectedly, pending changes are rejected, onFailure is called once, and reads continue', async () => {
    const heard: Error[] = []
    const { catalog, worker } = await openThread(tempDirectory(), (error) => heard.push(error))
    const bucketId = await newBucket(catalog, 'b')
    const waiting = newItems(5).map((item) => catalog.addItems(bucketId, inBlobStore([item])))
    const settled = Promise.allSettled(waiting)
    await worker.terminate()
    const outcomes = (await settled).map(({ status }) => status)
    expect(outcomes).toEqual(Array(5).fill('rejected'))
    await expect(catalog.addItems(bucketId, inBlobStore(newItems(1)))).rejects.toThrow(
      'the thread catalog-writer has ended',
    )
    await expect(catalog.checkWrites()).rejects.toThrow()
    expect(heard).toHaveLength(1)
    expect(await allPages(catalog, bucketId)).toEqual([])
    await catalog.close()
    expect(heard).toHaveLength(1)
  })

  test('closing it does not call onFailure', async () => {
    const heard: Error[] = []
    const { catalog } = await openThread(tempDirectory(), (error) => heard.push(error))
    await Promise.all([catalog.close(), catalog.close()])
    expect(heard).toEqual([])
  })
})
