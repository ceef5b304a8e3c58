import type { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Outcome } from '../../../src/storage/batch-threads.ts'
import { openDataDirectory } from '../../../src/storage/catalog/engines/sqlite/data-directory.ts'
import { all, one } from '../../../src/storage/catalog/engines/sqlite/sqlite-database.ts'
import { commitBatch } from '../../../src/storage/catalog/engines/sqlite/sqlite-writer.ts'
import { prepareWrites } from '../../../src/storage/catalog/engines/sqlite/sqlite-writes.ts'
import type { Output, Write } from '../../../src/storage/catalog/nouns.ts'
import { inBlobStore, newItem, newItems, newToken } from './samples.ts'
import { tempDirectory } from './temp-directory.ts'

function openWithBucket() {
  const directory = tempDirectory()
  const db = openDataDirectory(directory)
  onTestFinished(() => db.close())
  const applyWrite = prepareWrites(db)
  const run = (...writes: Write[]) => commitBatch(db, applyWrite, writes)
  expect(run({ kind: 'addToken', input: [newToken('a')] })).toEqual([{ output: true }])
  const total = () => one(db.prepare('SELECT total, (SELECT count(*) FROM items) FROM buckets'))
  return { db, directory, run, total }
}

const adding = (items = newItems(1)): Write => ({
  kind: 'addItems',
  input: [1 as never, inBlobStore(items)],
})

const errorOf = (outcome: Outcome<Output> | undefined): unknown =>
  outcome && 'error' in outcome ? outcome.error : null

const quotaExceeded = expect.objectContaining({ code: 'quota-exceeded' })

/** Makes one COMMIT fail as SQLite does if the sync of the log fails (SQLITE_IOERR_FSYNC). */
function failNextCommit(db: DatabaseSync) {
  const exec = db.exec.bind(db)
  const spy = vi.spyOn(db, 'exec').mockImplementation((sql) => {
    if (sql !== 'COMMIT') return exec(sql)
    spy.mockRestore()
    throw Object.assign(new Error('disk I/O error'), { code: 'ERR_SQLITE_ERROR', errcode: 1034 })
  })
}

describe('a batch', () => {
  test('is one transaction for any number of writes', () => {
    const { db, run, total } = openWithBucket()
    const exec = vi.spyOn(db, 'exec')
    run(...Array.from({ length: 50 }, () => adding()))
    const calls = exec.mock.calls.map(([sql]) => sql)
    expect(calls.filter((sql) => sql === 'COMMIT')).toHaveLength(1)
    // A savepoint would copy every page that changes.
    expect(calls.filter((sql) => sql.startsWith('SAVEPOINT'))).toHaveLength(0)
    expect(total()).toEqual([50, 50])
  })

  test('L10 numbers the items in the order of their writes, whatever is between them', () => {
    const { db, run } = openWithBucket()
    run({ kind: 'addToken', input: [{ ...newToken('b'), bucket: 'another' }] })
    const items = newItems(6)
    const add = (index: number, bucket: number): Write => ({
      kind: 'addItems',
      input: [bucket as never, inBlobStore(items.slice(index, index + 1))],
    })
    run(add(0, 1), add(1, 1), add(2, 2), add(3, 1), { kind: 'checkWrites', input: [] }, add(4, 1), add(5, 2))
    const listed = (bucket: number) =>
      all(db.prepare('SELECT id FROM items WHERE bucket_id = ? ORDER BY seq'), bucket).flat()
    expect(listed(1)).toEqual([0, 1, 3, 4].map((index) => items[index]?.id))
    expect(listed(2)).toEqual([2, 5].map((index) => items[index]?.id))
  })

  test('Q1 fails only the uploads that exceed the quota', () => {
    const { run, total } = openWithBucket()
    run({ kind: 'setBucket', input: [newToken('a').bucket, { maxItems: 4 }] })
    const outcomes = run(adding(newItems(2)), adding(newItems(3)), adding(newItems(2)), adding())
    expect(outcomes.map(errorOf)).toEqual([null, quotaExceeded, null, quotaExceeded])
    expect(total()).toEqual([4, 4])
  })

  test('a failed write is rolled back without the others', () => {
    const { run, total } = openWithBucket()
    const item = newItem()
    const outcomes = run(adding([item]), adding([newItem(), newItem(), item]), adding())
    expect(outcomes.map((outcome) => 'error' in outcome)).toEqual([false, true, false])
    expect(errorOf(outcomes[1])).toMatchObject({ message: expect.stringContaining('UNIQUE'), errcode: 2067 })
    expect(total()).toEqual([2, 2])
  })

  test('a failed commit fails every write and stores none, and its WAL frames are overwritten', () => {
    const { db, run, total } = openWithBucket()
    failNextCommit(db)
    const outcomes = run(adding(), adding())
    expect(outcomes.map((outcome) => String(errorOf(outcome)))).toEqual(
      Array(2).fill('Error: disk I/O error'),
    )
    expect(total()).toEqual([0, 0])
    expect(all(db.prepare("SELECT value FROM meta WHERE key = 'failed_commits'"))).toEqual([['1']])
    expect(run(adding())).toEqual([{ output: undefined }])
    expect(total()).toEqual([1, 1])
  })

  test('a full disk fails the batch with storage-full until there is space', () => {
    const { db, run, total } = openWithBucket()
    const pages = Number(one(db.prepare('PRAGMA page_count'))?.[0])
    db.exec(`PRAGMA max_page_count = ${pages}`)
    const outcomes = run(adding(), adding(newItems(500)), adding())
    for (const outcome of outcomes)
      expect(errorOf(outcome)).toMatchObject({ name: 'Fault', code: 'storage-full' })
    expect(outcomes).toHaveLength(3)
    expect(total()).toEqual([0, 0])
    db.exec('PRAGMA max_page_count = 1000000')
    run(adding(newItems(500)))
    expect(total()).toEqual([500, 500])
  })
})
