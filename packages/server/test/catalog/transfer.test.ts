import { join } from 'node:path'
import { describe, onTestFinished } from 'vitest'
import { createDatabase } from '../../../../test/harness/postgres.ts'
import { openPostgresAudit } from '../../src/catalog/postgres/audit.ts'
import { openPostgresAuditLog } from '../../src/catalog/postgres/audit-log-reader.ts'
import { openPostgresCatalog } from '../../src/catalog/postgres/catalog.ts'
import { openPostgresSource, openPostgresTarget } from '../../src/catalog/postgres/transfer.ts'
import type { NewItem } from '../../src/catalog/records.ts'
import { openSqliteAudit } from '../../src/catalog/sqlite/audit.ts'
import { openSqliteAuditLog } from '../../src/catalog/sqlite/audit-log-reader.ts'
import { openSqliteCatalog } from '../../src/catalog/sqlite/catalog.ts'
import { openSqliteSource, openSqliteTarget } from '../../src/catalog/sqlite/transfer.ts'
import { tempDirectory } from './temp-directory.ts'
import { type Data, describeTransfer } from './transfer-contract.ts'

function newDirectory(): Data {
  const directory = join(tempDirectory(), 'data')
  return {
    open: (actor = null) => openSqliteCatalog({ directory, writer: 'direct', actor }),
    openLog: () => openSqliteAuditLog(directory),
    openSource: () => openSqliteSource(directory),
    openTarget: () => openSqliteTarget(directory),
    damage: (item: NewItem) => markDamaged(openSqliteAudit(directory), item),
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
    damage: (item: NewItem) => markDamaged(openPostgresAudit(url), item),
  }
}

async function markDamaged(opened: ReturnType<typeof openPostgresAudit>, { id }: NewItem): Promise<void> {
  const audit = await opened
  await audit.markDamaged([id])
  await audit.close()
}

describeTransfer('SQLite to SQLite', async () => ({ from: newDirectory(), to: newDirectory() }))

describe('with a PostgreSQL server', () => {
  describeTransfer('SQLite to PostgreSQL', async () => ({ from: newDirectory(), to: await newDatabase() }))
  describeTransfer('PostgreSQL to SQLite', async () => ({ from: await newDatabase(), to: newDirectory() }))
})
