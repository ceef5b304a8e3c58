import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { CatalogVersionError } from '../../../src/storage/catalog/catalog.ts'
import { openSqliteCatalog } from '../../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { openConnection } from '../../../src/storage/catalog/engines/sqlite/sqlite-database.ts'
import { migrate } from '../../../src/storage/catalog/engines/sqlite/sqlite-schema.ts'
import { outputOf, startProcess } from './child-process.ts'
import { inBlobStore, newBucket, newItem } from './samples.ts'
import { tempDirectory } from './temp-directory.ts'

function change(directory: string, sql: string): void {
  const db = new DatabaseSync(join(directory, 'catalog.db'))
  db.exec(sql)
  db.close()
}

async function open(directory: string) {
  const catalog = await openSqliteCatalog({ directory, writer: 'direct' })
  onTestFinished(() => catalog.close())
  return catalog
}

describe('migrations', () => {
  test('a catalog of a newer version is refused and not changed, and the message states the solution', async () => {
    const directory = tempDirectory()
    await (await open(directory)).close()
    const version = String(
      new DatabaseSync(join(directory, 'catalog.db')).prepare('PRAGMA user_version').get()?.['user_version'],
    )
    change(directory, 'PRAGMA user_version = 99')
    await expect(open(directory)).rejects.toThrow(CatalogVersionError)
    await expect(open(directory)).rejects.toThrow(/version 99.*newer mediabucket/)
    change(directory, `PRAGMA user_version = ${version}`)
    await open(directory)
  })

  test('O8 a catalog of an earlier version is migrated once, with all its data; a new one gets the schema', async () => {
    const migrations = [
      'ALTER TABLE items ADD COLUMN column_of_test INTEGER',
      'UPDATE items SET column_of_test = size',
    ]
    const directory = tempDirectory()
    const catalog = await open(directory)
    const item = newItem()
    await catalog.addItems(await newBucket(catalog, 'old'), inBlobStore([item]))
    await catalog.close()
    const db = openConnection(directory)
    const fresh = openConnection(tempDirectory())
    onTestFinished(() => {
      db.close()
      fresh.close()
    })
    for (const known of [migrations.slice(0, 1), migrations, migrations]) migrate(db, known)
    expect(db.prepare('SELECT id, column_of_test FROM items').all()).toEqual([[item.id, item.size]])
    expect(() => migrate(db)).toThrow(/newer mediabucket/)
    migrate(fresh, migrations)
    const versionOf = (from: DatabaseSync) => from.prepare('PRAGMA user_version').get()
    expect(versionOf(fresh)).toEqual(versionOf(db))
  })

  test('a database of another program is refused', async () => {
    const directory = tempDirectory()
    change(directory, 'CREATE TABLE notes (body TEXT)')
    await expect(open(directory)).rejects.toThrow(CatalogVersionError)
  })

  test('a file without tables, as after a crash before the first commit, is migrated', async () => {
    const empty = tempDirectory()
    writeFileSync(join(empty, 'catalog.db'), '')
    expect((await open(empty)).epoch).toMatch(/^[0-9a-f]{32}$/)

    const onlyWal = tempDirectory()
    change(onlyWal, 'PRAGMA journal_mode = WAL')
    expect((await open(onlyWal)).epoch).toMatch(/^[0-9a-f]{32}$/)
  })

  test('a catalog that another process creates between two reads is opened', () => {
    const directory = tempDirectory()
    const [db, other] = [openConnection(directory), openConnection(directory)]
    onTestFinished(() => {
      db.close()
      other.close()
    })
    const prepare = db.prepare.bind(db)
    db.prepare = (sql) => {
      if (sql.includes('sqlite_schema')) {
        db.prepare = prepare
        migrate(other)
      }
      return prepare(sql)
    }
    migrate(db)
    expect(db.prepare).toBe(prepare)
    expect(db.prepare('SELECT count(*) FROM items').get()).toEqual([0])
  })

  test('processes that open a new directory concurrently create one catalog', async () => {
    for (let round = 0; round < 2; round++) {
      const directory = join(tempDirectory(), 'data')
      const options = (writer: string) => JSON.stringify({ directory, writer })
      const opening = ['thread', 'direct', 'direct', 'thread'].map((writer) =>
        outputOf(
          startProcess(
            'sqlite-catalog.ts',
            `const catalog = await module.openSqliteCatalog(${options(writer)})
            await catalog.checkWrites()
            console.log(catalog.epoch)
            await catalog.close()`,
          ),
        ),
      )
      const epochs = new Set(await Promise.all(opening))
      expect([...epochs]).toEqual([(await open(directory)).epoch])
    }
  })
})
