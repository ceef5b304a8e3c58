import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { CatalogVersionError } from '../../src/catalog/catalog-errors.ts'
import { openSqliteCatalog } from '../../src/catalog/sqlite/catalog.ts'
import { openConnection } from '../../src/catalog/sqlite/connection.ts'
import { migrate } from '../../src/catalog/sqlite/migrate.ts'
import { initial } from '../../src/catalog/sqlite/migrations/0001-initial.ts'
import { outputOf, startProcess } from './child-process.ts'
import { checkNewIndex } from './name-search-contract.ts'
import { hashOf, inBlobStore, newItem } from './samples.ts'
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

  test('a catalog of version 1 is migrated with all its data', async () => {
    const directory = tempDirectory()
    const item = newItem()
    change(
      directory,
      `${initial};
      INSERT INTO buckets (name, created_at, revision, total, bytes, next_seq) VALUES ('old', 1, 5, 1, 1000, 1);
      INSERT INTO tokens (id, bucket_id, name, hash, scopes, created_at)
        VALUES ('t', 1, 'first', X'${Buffer.from(hashOf('old')).toString('hex')}', 'media:read', 1);
      INSERT INTO media (bucket_id, seq, id, content_type, size, created_at)
        VALUES (1, 0, '${item.id}', 'image/jpeg', 1000, 1);
      PRAGMA user_version = 1; PRAGMA application_id = 0x6d626b74`,
    )
    const catalog = await open(directory)
    const grant = await catalog.findGrant(hashOf('old'))
    if (!grant) throw new Error('the old token is unknown')
    expect(grant).toMatchObject({ revision: 5, total: 1 })
    expect(await catalog.bucket(grant.bucketId)).toMatchObject({
      name: 'old',
      items: 1,
      bytes: 1000,
      reservedItems: 0,
      reservedBytes: 0,
      maxItems: null,
      maxBytes: null,
    })
    expect(await catalog.media(item.id)).toMatchObject({ size: 1000 })
    const images = {
      bucketId: grant.bucketId,
      order: 'oldest',
      kind: 'image',
      from: 1,
      to: 2,
      name: null,
    } as const
    expect((await catalog.items(images, null, 2)).rows).toMatchObject([{ seq: 0, item: { id: item.id } }])
    await catalog.addMedia(grant.bucketId, inBlobStore([newItem()]))
    expect(await catalog.unfinishedUploads()).toEqual([])
  })

  test('K11 names that an earlier version indexed are indexed again', async () => {
    const directory = tempDirectory()
    const reopen = async () => {
      change(directory, 'PRAGMA user_version = 17')
      return await open(directory)
    }
    await checkNewIndex(await open(directory), (sql) => change(directory, sql), reopen)
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
    expect(db.prepare('SELECT count(*) FROM media').get()).toEqual([0])
  })

  test('processes that open a new directory concurrently create one catalog', async () => {
    for (let round = 0; round < 2; round++) {
      const directory = join(tempDirectory(), 'data')
      const options = (writer: string) => JSON.stringify({ directory, writer })
      const opening = ['thread', 'direct', 'direct', 'thread'].map((writer) =>
        outputOf(
          startProcess(
            'catalog.ts',
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
