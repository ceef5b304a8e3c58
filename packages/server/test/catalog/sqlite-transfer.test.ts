import { join } from 'node:path'
import type { NewMedia } from '../../src/catalog/records.ts'
import { openSqliteAudit } from '../../src/catalog/sqlite/audit.ts'
import { openSqliteCatalog } from '../../src/catalog/sqlite/catalog.ts'
import { openSqliteSource } from '../../src/catalog/sqlite/transfer-source.ts'
import { openSqliteTarget } from '../../src/catalog/sqlite/transfer-target.ts'
import { tempDirectory } from './temp-directory.ts'
import { describeTransfer } from './transfer-contract.ts'

function newData() {
  const directory = join(tempDirectory(), 'data')
  return {
    open: () => openSqliteCatalog({ directory, writer: 'direct' }),
    openSource: () => openSqliteSource(directory),
    openTarget: () => openSqliteTarget(directory),
    async damage({ id }: NewMedia) {
      const audit = await openSqliteAudit(directory)
      await audit.markDamaged([id])
      await audit.close()
    },
  }
}

describeTransfer('SQLite to SQLite', async () => ({ from: newData(), to: newData() }))
