import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { gatheredReads } from '../../src/catalog/sqlite/gathered-reads.ts'

function reading(read: (key: number) => string) {
  const db = new DatabaseSync(':memory:')
  const inTransaction: boolean[] = []
  const { read: gathered, readAll } = gatheredReads(db, (key: number) => {
    inTransaction.push(db.isTransaction)
    return read(key)
  })
  return { db, inTransaction, gathered, readAll }
}

test('reads that are asked for together are one transaction, which nothing outlives', async () => {
  const { db, inTransaction, gathered } = reading((key) => `row ${key}`)
  expect(await Promise.all([gathered(1), gathered(2), gathered(1)])).toEqual(['row 1', 'row 2', 'row 1'])
  expect(inTransaction).toEqual([true, true, true])
  expect(db.isTransaction).toBe(false)
})

test('A7 a read begins after it was asked for, and is never kept for a later one', async () => {
  let row = 'before'
  const { inTransaction, gathered } = reading(() => row)
  const first = gathered(1)
  row = 'after'
  expect(await first).toBe('after')
  row = 'later'
  expect(await gathered(1)).toBe('later')
  expect(inTransaction).toEqual([false, false])
})

test('a read that fails fails alone', async () => {
  const { db, gathered } = reading((key) => {
    if (key === 2) throw new Error('no row')
    return `row ${key}`
  })
  const [one, two, three] = await Promise.allSettled([gathered(1), gathered(2), gathered(3)])
  expect([one?.status, two?.status, three?.status]).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(db.isTransaction).toBe(false)
})

test('what was asked for before a connection closes is read, what is asked for after is refused', async () => {
  const { db, gathered, readAll } = reading((key) => (db.isOpen ? `row ${key}` : expect.fail('it is closed')))
  const before = [gathered(1), gathered(2)]
  readAll()
  db.close()
  const after = [gathered(3), gathered(4)]
  expect(await Promise.all(before)).toEqual(['row 1', 'row 2'])
  expect((await Promise.allSettled(after)).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
})
