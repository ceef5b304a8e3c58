import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openSqliteCatalog } from '../../src/catalog/sqlite/catalog.ts'
import { CatalogVersionError } from '../../src/catalog/sqlite/migrate.ts'
import { outputOf, startProcess } from './child-process.ts'
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
  test('a catalog of a newer program is refused, left as it is, and the message says what to do', async () => {
    const directory = tempDirectory()
    await (await open(directory)).close()
    change(directory, 'PRAGMA user_version = 99')
    await expect(open(directory)).rejects.toThrow(CatalogVersionError)
    await expect(open(directory)).rejects.toThrow(/version 99.*newer mediabucket/)
    change(directory, 'PRAGMA user_version = 1')
    await open(directory)
  })

  test('a database of another program is refused', async () => {
    const directory = tempDirectory()
    change(directory, 'CREATE TABLE notes (body TEXT)')
    await expect(open(directory)).rejects.toThrow(CatalogVersionError)
  })

  test('a file without tables, as a crash before the first commit leaves it, is made whole', async () => {
    const empty = tempDirectory()
    writeFileSync(join(empty, 'catalog.db'), '')
    expect((await open(empty)).epoch).toMatch(/^[0-9a-f]{32}$/)

    const onlyWal = tempDirectory()
    change(onlyWal, 'PRAGMA journal_mode = WAL')
    expect((await open(onlyWal)).epoch).toMatch(/^[0-9a-f]{32}$/)
  })

  test('processes that open a new directory at once make one catalog', async () => {
    for (let round = 0; round < 3; round++) {
      const directory = join(tempDirectory(), 'data')
      const options = (writer: string) => JSON.stringify({ directory, writer })
      const opening = ['thread', 'direct', 'direct', 'thread'].map((writer) =>
        outputOf(
          startProcess(
            'catalog.ts',
            `const catalog = await module.openSqliteCatalog(${options(writer)})
            await catalog.check()
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
