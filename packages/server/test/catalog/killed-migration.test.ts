import { once } from 'node:events'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { openSqliteCatalog } from '../../src/catalog/sqlite/catalog.ts'
import { startProcess } from './child-process.ts'
import { inBlobStore, newBucket, newItem } from './samples.ts'
import { tempDirectory } from './temp-directory.ts'

const versionOne = join(import.meta.dirname, '../../../../test/fixtures/data-version-1/catalog.db')

/** Runs the statements of a migration one by one, and kills the process before the n-th. */
const killedAt = (nth: number, directory: string) => `
  const { DatabaseSync } = await import('node:sqlite')
  const { exec } = DatabaseSync.prototype
  let count = 0
  DatabaseSync.prototype.exec = function (sql) {
    // A trigger contains semicolons.
    const statements = sql.match(/\\s*CREATE TRIGGER[\\s\\S]*?END;|\\s*[^;\\s][^;]*;?/g) ?? []
    for (const statement of statements) {
      count += 1
      if (count === ${nth}) process.kill(process.pid, 'SIGKILL')
      exec.call(this, statement)
    }
  }
  module.openDataDirectory(${JSON.stringify(directory)}).close()`

/** The data that a migration must not change. */
function rowsOf(directory: string): unknown[] {
  const db = new DatabaseSync(join(directory, 'catalog.db'))
  try {
    return db.prepare('SELECT bucket_id, seq, id, size, sha256 FROM media ORDER BY bucket_id, seq').all()
  } finally {
    db.close()
  }
}

test('O8 a migration that is killed before any of its statements is completed by the next start', async () => {
  const first = tempDirectory()
  cpSync(versionOne, join(first, 'catalog.db'))
  const rows = rowsOf(first)
  let killed = 0
  for (let nth = 1; ; nth += 1) {
    const directory = tempDirectory()
    cpSync(versionOne, join(directory, 'catalog.db'))
    const child = startProcess('data-directory.ts', killedAt(nth, directory))
    const [code, signal] = await once(child, 'exit')
    if (signal === 'SIGKILL') killed += 1
    else expect(code).toBe(0)
    const catalog = await openSqliteCatalog({ directory, writer: 'direct' })
    onTestFinished(() => catalog.close())
    await catalog.checkWrites()
    // All tables of this version accept rows.
    await catalog.addMedia(await newBucket(catalog, 'new'), inBlobStore([newItem()]))
    expect(rowsOf(directory)).toEqual([...rows, expect.anything()])
    if (signal !== 'SIGKILL') break
  }
  // The migrations from version 1 on have more statements than these.
  expect(killed).toBeGreaterThan(15)
})
