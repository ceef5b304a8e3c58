import { StatementSync } from 'node:sqlite'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openDataDirectory } from '../../../src/storage/catalog/engines/sqlite/data-directory.ts'
import {
  createUnchangedRows,
  inOneTransaction,
  TickReads,
  UnchangedReads,
} from '../../../src/storage/catalog/engines/sqlite/hot-reads.ts'
import {
  openSqliteCatalog,
  prepareReads,
} from '../../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { one, openConnection } from '../../../src/storage/catalog/engines/sqlite/sqlite-database.ts'
import { prepareLocateItem } from '../../../src/storage/catalog/engines/sqlite/sqlite-ranks.ts'
import { commitBatch } from '../../../src/storage/catalog/engines/sqlite/sqlite-writer.ts'
import { prepareWrites } from '../../../src/storage/catalog/engines/sqlite/sqlite-writes.ts'
import { newBucket, newToken } from './samples.ts'
import { tempDirectory } from './temp-directory.ts'

function opened() {
  const directory = tempDirectory()
  const writing = openDataDirectory(directory)
  const db = openConnection(directory)
  onTestFinished(() => {
    writing.close()
    if (db.isOpen) db.close()
  })
  const applyWrite = prepareWrites(writing)
  const reads = prepareReads(db, prepareLocateItem(db))
  const findGrant = vi.fn((hash: Uint8Array) => reads.findGrant(hash, 0))
  return {
    apply: (...writes: Parameters<typeof commitBatch>[2]) => commitBatch(writing, applyWrite, writes),
    db,
    findGrant,
    rows: createUnchangedRows(db, { keyOf: (hash) => Buffer.from(hash).toString('hex'), read: findGrant }),
  }
}

test('a row is read once until another connection commits', () => {
  const { apply, findGrant, rows } = opened()
  const [one, other] = [newToken('a'), newToken('b')]
  apply({ kind: 'addToken', input: [one] }, { kind: 'addToken', input: [other] })
  for (let turn = 0; turn < 3; turn += 1) {
    rows.refresh()
    expect(rows.read(one.hash)).toMatchObject({ tokenId: one.id, revokedAt: null })
    expect(rows.read(other.hash)).toMatchObject({ tokenId: other.id })
    expect(rows.has(other.hash)).toBe(true)
  }
  expect(findGrant).toHaveBeenCalledTimes(2)
})

test('A7 a revocation of another connection holds from the next turn', () => {
  const { apply, rows } = opened()
  const token = newToken('a')
  const refreshed = () => {
    rows.refresh()
    return rows.read(token.hash)
  }
  expect(refreshed()).toBeNull()
  apply({ kind: 'addToken', input: [token] })
  expect(refreshed()).toMatchObject({ revokedAt: null })
  apply({ kind: 'revokeToken', input: [token.id, 5] })
  expect(refreshed()).toMatchObject({ revokedAt: 5 })
})

test('a version that cannot be read leaves no row of an earlier one', () => {
  const { apply, db, findGrant, rows } = opened()
  const token = newToken('a')
  apply({ kind: 'addToken', input: [token] })
  rows.refresh()
  rows.read(token.hash)
  db.close()
  expect(() => rows.refresh()).toThrow()
  findGrant.mockReturnValue(null)
  expect(rows.read(token.hash)).toBeNull()
})

test('a value is read again from the time at which a part of it expires', async () => {
  vi.useFakeTimers({ now: 9, toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const { db } = opened()
  const read = vi.fn((key: string, now: number) => (now < 10 ? { key, expiry: 10 } : null))
  const reads = new UnchangedReads(db, {
    keyOf: (key: string) => key,
    read,
    expiryOf: ({ expiry }) => expiry,
  })
  expect(await reads.read('a')).toEqual({ key: 'a', expiry: 10 })
  expect(await reads.read('a')).toEqual({ key: 'a', expiry: 10 })
  expect(read).toHaveBeenCalledOnce()
  vi.setSystemTime(10)
  expect(await reads.read('a')).toBeNull()
})

/** Reads through `read` that nothing in memory answers, because each has another key. */
function reading(read: (key: number) => string) {
  const { db } = opened()
  return { db, reads: new UnchangedReads(db, { keyOf: String, read, expiryOf: () => null }) }
}

test('A7 a read begins after its request', async () => {
  let row = 'before'
  const { reads } = reading(() => row)
  const first = reads.read(1)
  row = 'after'
  expect(await first).toBe('after')
})

test('a read that fails does not fail the others', async () => {
  const { reads } = reading((key) => (key === 2 ? expect.fail('no row') : `row ${key}`))
  const [one, two, three] = await Promise.allSettled([reads.read(1), reads.read(2), reads.read(3)])
  expect([one?.status, two?.status, three?.status]).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

test('pending reads are completed before the connection closes, later ones are rejected', async () => {
  const { db, reads } = reading((key) => (db.isOpen ? `row ${key}` : expect.fail('it is closed')))
  const before = [reads.read(1), reads.read(2)]
  reads.flush()
  db.close()
  const after = await Promise.allSettled([reads.read(3), reads.read(4)])
  expect(await Promise.all(before)).toEqual(['row 1', 'row 2'])
  expect(after.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
})

test('L4 reads in one transaction see one state; one that fails fails no other', async () => {
  const { apply, db } = opened()
  const count = db.prepare('SELECT count(*) FROM tokens')
  const readOne = (key: number) => {
    if (key === 1) apply({ kind: 'addToken', input: [newToken('a')] })
    if (key === 2) expect.fail('no row')
    return one(count)?.[0]
  }
  const reads = new TickReads(inOneTransaction(db, () => readOne))
  const results = await Promise.allSettled([0, 1, 2, 3].map(reads.read))
  expect(results.map((result) => result.status === 'fulfilled' && result.value)).toEqual([0, 0, false, 0])
  expect(db.isTransaction).toBe(false)
  expect(await reads.read(4)).toBe(1)
})

test('L4 no read joins a transaction that has not ended', async () => {
  const { apply, db } = opened()
  const count = db.prepare('SELECT count(*) FROM tokens')
  const reads = new TickReads(inOneTransaction(db, () => (_key: number) => one(count)?.[0]))
  db.exec('BEGIN')
  expect(one(count)?.[0]).toBe(0)
  apply({ kind: 'addToken', input: [newToken('a')] })
  expect(await reads.read(1)).toBe(1)
})

test('L4 pages that are requested together are read in one transaction, at the latest when the catalog closes', async () => {
  const catalog = await openSqliteCatalog({ directory: tempDirectory(), writer: 'direct' })
  const bucketId = await newBucket(catalog, 'a')
  const run = vi.spyOn(StatementSync.prototype, 'run')
  onTestFinished(() => run.mockRestore())
  await Promise.all([1, 2, 3, 4].map((page) => catalog.page(bucketId, page)))
  const texts = run.mock.contexts.map(
    (statement) => statement instanceof StatementSync && statement.sourceSQL,
  )
  expect(texts.filter((text) => text === 'BEGIN')).toHaveLength(1)
  const last = catalog.page(bucketId, 1)
  await catalog.close()
  expect(await last).toMatchObject({ total: 0 })
})

test('reads whose transaction cannot begin are rejected', async () => {
  const { db } = opened()
  const reads = new TickReads(inOneTransaction(db, () => (key: number) => key))
  db.close()
  const refused = await Promise.allSettled([1, 3].map(reads.read))
  expect(refused.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
})
