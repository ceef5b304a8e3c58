import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { createBatchedReads } from '../../../src/storage/catalog/engines/sqlite/hot-reads.ts'

function reading(read: (key: number) => string) {
  const db = new DatabaseSync(':memory:')
  const inTransaction: boolean[] = []
  const { read: batched, flush } = createBatchedReads(db, (key: number) => {
    inTransaction.push(db.isTransaction)
    return read(key)
  })
  return { db, inTransaction, batched, flush }
}

test('reads of one tick share a transaction, which ends after them', async () => {
  const { db, inTransaction, batched } = reading((key) => `row ${key}`)
  expect(await Promise.all([batched(1), batched(2), batched(1)])).toEqual(['row 1', 'row 2', 'row 1'])
  expect(inTransaction).toEqual([true, true, true])
  expect(db.isTransaction).toBe(false)
})

test('A7 a read begins after its request, and no result is reused', async () => {
  let row = 'before'
  const { inTransaction, batched } = reading(() => row)
  const first = batched(1)
  row = 'after'
  expect(await first).toBe('after')
  row = 'later'
  expect(await batched(1)).toBe('later')
  expect(inTransaction).toEqual([false, false])
})

test('a read that fails does not fail the others', async () => {
  const { db, batched } = reading((key) => {
    if (key === 2) throw new Error('no row')
    return `row ${key}`
  })
  const [one, two, three] = await Promise.allSettled([batched(1), batched(2), batched(3)])
  expect([one?.status, two?.status, three?.status]).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(db.isTransaction).toBe(false)
})

test('pending reads are completed before the connection closes, later ones are rejected', async () => {
  const { db, batched, flush } = reading((key) => (db.isOpen ? `row ${key}` : expect.fail('it is closed')))
  const before = [batched(1), batched(2)]
  flush()
  db.close()
  const after = [batched(3), batched(4)]
  expect(await Promise.all(before)).toEqual(['row 1', 'row 2'])
  expect((await Promise.allSettled(after)).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
})
