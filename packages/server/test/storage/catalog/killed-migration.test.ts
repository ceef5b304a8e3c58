import { once } from 'node:events'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openSqliteCatalog } from '../../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { openConnection } from '../../../src/storage/catalog/engines/sqlite/sqlite-database.ts'
import { migrate } from '../../../src/storage/catalog/engines/sqlite/sqlite-schema.ts'
import { startProcess } from './child-process.ts'
import { inBlobStore, newBucket, newItem } from './samples.ts'
import { tempDirectory } from './temp-directory.ts'

const migrations = [
  'ALTER TABLE items ADD COLUMN column_of_test INTEGER',
  'CREATE INDEX items_by_column_of_test ON items (column_of_test)',
  'UPDATE items SET column_of_test = size',
]

/** Migrates the catalog, and kills the process before the n-th statement. */
const killedAt = (nth: number, directory: string) => `
  const { openConnection } = await import(new URL('sqlite-database.ts', modules))
  const { DatabaseSync } = await import('node:sqlite')
  const { exec } = DatabaseSync.prototype
  const db = openConnection(${JSON.stringify(directory)})
  let count = 0
  DatabaseSync.prototype.exec = function (sql) {
    count += 1
    if (count === ${nth}) process.kill(process.pid, 'SIGKILL')
    exec.call(this, sql)
  }
  module.migrate(db, ${JSON.stringify(migrations)})
  db.close()`

test('O8 a migration that is killed before any of its statements is completed by the next start', async () => {
  const first = tempDirectory()
  const catalog = await openSqliteCatalog({ directory: first, writer: 'direct' })
  const item = newItem()
  await catalog.addItems(await newBucket(catalog, 'a'), inBlobStore([item]))
  await catalog.close()
  let killed = 0
  for (let nth = 1; ; nth += 1) {
    const directory = tempDirectory()
    cpSync(join(first, 'catalog.db'), join(directory, 'catalog.db'))
    const [code, signal] = await once(startProcess('sqlite-schema.ts', killedAt(nth, directory)), 'exit')
    if (signal === 'SIGKILL') killed += 1
    else expect(code).toBe(0)
    const db = openConnection(directory)
    onTestFinished(() => db.close())
    migrate(db, migrations)
    expect(db.prepare('SELECT id, column_of_test FROM items').all()).toEqual([[item.id, item.size]])
    if (signal !== 'SIGKILL') break
  }
  // Apart from the migrations, the begin, the new version and the commit.
  expect(killed).toBeGreaterThan(migrations.length)
})
