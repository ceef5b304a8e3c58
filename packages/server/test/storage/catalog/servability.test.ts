import { expect, onTestFinished, test, vi } from 'vitest'
import { openDataDirectory } from '../../../src/storage/catalog/engines/sqlite/data-directory.ts'
import { prepareServability } from '../../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { openConnection } from '../../../src/storage/catalog/engines/sqlite/sqlite-database.ts'
import { commitBatch } from '../../../src/storage/catalog/engines/sqlite/sqlite-writer.ts'
import { prepareWrites } from '../../../src/storage/catalog/engines/sqlite/sqlite-writes.ts'
import type { BucketId } from '../../../src/storage/catalog/records.ts'
import { inBlobStore, newItem, newToken } from './samples.ts'
import { tempDirectory } from './temp-directory.ts'

test('all states are as of one moment, although another connection commits during the call', () => {
  const directory = tempDirectory()
  const writing = openDataDirectory(directory)
  const db = openConnection(directory)
  onTestFinished(() => {
    writing.close()
    db.close()
  })
  const applyWrite = prepareWrites(writing)
  const apply = (...changes: Parameters<typeof commitBatch>[2]) => commitBatch(writing, applyWrite, changes)
  const bucketId = 1 as BucketId
  const [known, unknown] = [newItem(), newItem()]
  apply({ kind: 'addToken', input: [newToken('a')] })
  apply({ kind: 'addItems', input: [bucketId, inBlobStore([known, unknown])] })

  // Before the transaction of the reads begins, another connection removes both items.
  const ids = [known.id, unknown.id]
  const beforeBegin = vi.fn<() => void>()
  const prepare = db.prepare.bind(db)
  vi.spyOn(db, 'prepare').mockImplementation((sql) => {
    const statement = prepare(sql)
    if (sql !== 'BEGIN') return statement
    const run = statement.run.bind(statement)
    vi.spyOn(statement, 'run').mockImplementation(() => {
      beforeBegin()
      return run()
    })
    return statement
  })
  const servability = prepareServability(db)
  expect(servability([known.id])).toEqual(['servable'])
  beforeBegin.mockImplementationOnce(() => {
    apply({ kind: 'removeItems', input: [bucketId, ids, undefined, 1] })
  })
  expect(servability(ids)).toEqual(['not', 'not'])
  expect(beforeBegin).toHaveBeenCalledTimes(2)
})
