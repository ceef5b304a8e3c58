import { join } from 'node:path'
import { describe, onTestFinished } from 'vitest'
import { canUsePostgres, createDatabase } from '../../../../test/harness/postgres.ts'
import { openPostgresAudit } from '../../src/catalog/postgres/audit.ts'
import { openPostgresCatalog } from '../../src/catalog/postgres/catalog.ts'
import { openPostgresSource } from '../../src/catalog/postgres/transfer-source.ts'
import { openPostgresTarget } from '../../src/catalog/postgres/transfer-target.ts'
import type { NewMedia } from '../../src/catalog/records.ts'
import { openSqliteAudit } from '../../src/catalog/sqlite/audit.ts'
import { openSqliteCatalog } from '../../src/catalog/sqlite/catalog.ts'
import { openSqliteSource } from '../../src/catalog/sqlite/transfer-source.ts'
import { openSqliteTarget } from '../../src/catalog/sqlite/transfer-target.ts'
import { tempDirectory } from './temp-directory.ts'
import { describeTransfer } from './transfer-contract.ts'

function newDirectory() {
  const directory = join(tempDirectory(), 'data')
  return {
    open: () => openSqliteCatalog({ directory, writer: 'direct' }),
    openSource: () => openSqliteSource(directory),
    openTarget: () => openSqliteTarget(directory),
    damage: (item: NewMedia) => markDamaged(openSqliteAudit(directory), item),
  }
}

async function newDatabase() {
  const { url, release } = await createDatabase()
  onTestFinished(release)
  return {
    open: () => openPostgresCatalog({ url, role: 'command' }),
    openSource: () => openPostgresSource(url),
    openTarget: () => openPostgresTarget(url),
    damage: (item: NewMedia) => markDamaged(openPostgresAudit(url), item),
  }
}

async function markDamaged(opened: ReturnType<typeof openPostgresAudit>, { id }: NewMedia): Promise<void> {
  const audit = await opened
  await audit.markDamaged([id])
  await audit.close()
}

describeTransfer('SQLite to SQLite', async () => ({ from: newDirectory(), to: newDirectory() }))

describe.skipIf(!canUsePostgres)('with a PostgreSQL server', () => {
  describeTransfer('SQLite to PostgreSQL', async () => ({ from: newDirectory(), to: await newDatabase() }))
  describeTransfer('PostgreSQL to SQLite', async () => ({ from: await newDatabase(), to: newDirectory() }))
})
