import { expect, onTestFinished, test, vi } from 'vitest'
import { openDataDirectory } from '../../../src/storage/catalog/engines/sqlite/data-directory.ts'
import {
  createUnchangedReads,
  createUnchangedRows,
} from '../../../src/storage/catalog/engines/sqlite/hot-reads.ts'
import { prepareReads } from '../../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { openConnection } from '../../../src/storage/catalog/engines/sqlite/sqlite-database.ts'
import { prepareLocateItem } from '../../../src/storage/catalog/engines/sqlite/sqlite-ranks.ts'
import { commitBatch } from '../../../src/storage/catalog/engines/sqlite/sqlite-writer.ts'
import { prepareWrites } from '../../../src/storage/catalog/engines/sqlite/sqlite-writes.ts'
import { newToken } from './samples.ts'
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
  const reads = createUnchangedReads(db, {
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
