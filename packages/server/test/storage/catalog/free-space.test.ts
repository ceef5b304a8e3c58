import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { until } from '../../../../../test/harness/until.ts'
import { openSqliteCatalog } from '../../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { openSqliteInspection } from '../../../src/storage/catalog/engines/sqlite/sqlite-inspection.ts'
import { databaseSpace } from '../../../src/storage/sqlite.ts'
import { inBlobStore, newBucket, newItems } from './samples.ts'
import { tempDirectory } from './temp-directory.ts'

const megabyte = 1024 * 1024

const open = (directory: string) => new DatabaseSync(join(directory, 'catalog.db'), { returnArrays: true })

function spaceOf(directory: string) {
  const db = open(directory)
  try {
    return databaseSpace(db)
  } finally {
    db.close()
  }
}

test('F9 a new catalog has pages of 8 kB, and can return free ones to the file system', async () => {
  const directory = tempDirectory()
  const catalog = await openSqliteCatalog({ directory, writer: 'direct' })
  await catalog.close()
  const db = open(directory)
  expect(db.prepare('PRAGMA page_size').get()).toEqual([8192])
  expect(db.prepare('PRAGMA auto_vacuum').get()).toEqual([2])
  db.close()
})

test('F9 the writer thread returns free space until less than 64 MB of the catalog is free', async () => {
  const directory = tempDirectory()
  const first = await openSqliteCatalog({ directory, writer: 'direct' })
  await first.addItems(await newBucket(first, 'a'), inBlobStore(newItems(1_000)))
  await first.close()
  const db = open(directory)
  db.exec('PRAGMA synchronous = OFF; CREATE TABLE filler (bytes BLOB)')
  const fill = db.prepare('INSERT INTO filler VALUES (randomblob(?))')
  for (let count = 0; count < 72; count += 1) fill.run(megabyte)
  db.exec('DROP TABLE filler')
  db.close()
  expect(spaceOf(directory).free).toBeGreaterThan(70 * megabyte)

  const catalog = await openSqliteCatalog({ directory, writer: 'thread' })
  const free = await until('the release', () => {
    const { free } = spaceOf(directory)
    return free <= 64 * megabyte && free
  })
  // It stops there: later rows use the rest.
  expect(free).toBeGreaterThan(62 * megabyte)
  await catalog.close()
  expect(statSync(join(directory, 'catalog.db')).size).toBeLessThan(67 * megabyte)
  const inspection = await openSqliteInspection(directory)
  expect([
    (await inspection.damage()).details,
    await inspection.bucketFaults(),
    (await inspection.count()).items,
  ]).toEqual([[], [], 1_000])
  await inspection.close()
})
