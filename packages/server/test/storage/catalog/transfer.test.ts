import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../../../../test/harness/postgres.ts'
import { service } from '../../../src/core/token-rules.ts'
import { openPostgresAuditLog } from '../../../src/storage/catalog/engines/postgres/postgres-audit-log.ts'
import { openPostgresCatalog } from '../../../src/storage/catalog/engines/postgres/postgres-catalog.ts'
import { openPostgresInspection } from '../../../src/storage/catalog/engines/postgres/postgres-database.ts'
import {
  openPostgresSource,
  openPostgresTarget,
} from '../../../src/storage/catalog/engines/postgres/postgres-transfer.ts'
import { openSqliteAuditLog } from '../../../src/storage/catalog/engines/sqlite/sqlite-audit-log.ts'
import { openSqliteCatalog } from '../../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { openSqliteInspection } from '../../../src/storage/catalog/engines/sqlite/sqlite-inspection.ts'
import {
  openSqliteSource,
  openSqliteTarget,
} from '../../../src/storage/catalog/engines/sqlite/sqlite-transfer.ts'
import type { NewItem } from '../../../src/storage/catalog/records.ts'
import { newBucket, newKey } from './samples.ts'
import { tempDirectory } from './temp-directory.ts'
import { type Data, describeTransfer } from './transfer-contract.ts'

function newDirectory(): Data {
  const directory = join(tempDirectory(), 'data')
  return {
    open: (actor = null) => openSqliteCatalog({ directory, writer: 'direct', actor }),
    openLog: () => openSqliteAuditLog(directory),
    openSource: () => openSqliteSource(directory),
    openTarget: () => openSqliteTarget(directory),
    damage: (item: NewItem) => markDamaged(openSqliteInspection(directory), item),
  }
}

async function newDatabase(): Promise<Data> {
  const { url, release } = await createDatabase()
  onTestFinished(release)
  return {
    open: (actor = null) => openPostgresCatalog({ url, role: 'command', actor }),
    openLog: () => openPostgresAuditLog(url),
    openSource: () => openPostgresSource(url),
    openTarget: () => openPostgresTarget(url),
    damage: (item: NewItem) => markDamaged(openPostgresInspection(url), item),
  }
}

async function markDamaged(
  opened: ReturnType<typeof openPostgresInspection>,
  { id }: NewItem,
): Promise<void> {
  const inspection = await opened
  await inspection.markDamaged([id])
  await inspection.close()
}

describeTransfer('SQLite to SQLite', async () => ({ from: newDirectory(), to: newDirectory() }))

describe('with a PostgreSQL server', () => {
  describeTransfer('SQLite to PostgreSQL', async () => ({ from: newDirectory(), to: await newDatabase() }))
  describeTransfer('PostgreSQL to SQLite', async () => ({ from: await newDatabase(), to: newDirectory() }))

  test('F11, OK7, Y1 after the rows have moved, neither a change of a key alone nor an event alone is stored, until the source is opened again', async () => {
    const from = await newDatabase()
    const catalog = await from.open(service)
    const bucketId = await newBucket(catalog, 'pictures')
    const { key } = newKey('a.jpg')
    await catalog.putKey(bucketId, newKey(key), { mayReplace: false }, null)
    const source = await from.openSource()
    const changes = [
      () => catalog.editKey(bucketId, key, { isPublic: true }, {}),
      () => catalog.recordEvents([{ action: 'link', by: service, bucketId, target: null, detail: {} }]),
    ]
    await source.moveTo('MEDIABUCKET_DATA=/new', await source.state())
    for (const change of changes)
      await expect(change()).rejects.toMatchObject({ code: 'catalog-unavailable' })
    await source.reopen()
    for (const change of changes) await change()
    await Promise.all([source.close(), catalog.close()])
  })
})
