import type { DatabaseSync } from 'node:sqlite'
import { CatalogVersionError } from '../catalog-errors.ts'
import { integer } from '../rows.ts'
import { initial } from './migrations/0001-initial.ts'
import { uploads } from './migrations/0002-uploads.ts'
import { upkeep } from './migrations/0003-upkeep.ts'
import { contents } from './migrations/0004-contents.ts'
import { intents } from './migrations/0005-intents.ts'
import { intentDeadlines } from './migrations/0006-intent-deadlines.ts'
import { uploadParts } from './migrations/0007-upload-parts.ts'
import { kinds } from './migrations/0008-kinds.ts'
import { previews } from './migrations/0009-previews.ts'
import { edits } from './migrations/0010-edits.ts'
import { names } from './migrations/0011-names.ts'
import { trash } from './migrations/0012-trash.ts'
import { auditLog } from './migrations/0013-audit-log.ts'
import { privateBuckets } from './migrations/0014-private-buckets.ts'
import { removeMetadata } from './migrations/0015-remove-metadata.ts'
import { itemExpiry } from './migrations/0016-item-expiry.ts'
import { retiredByCode } from './migrations/0017-retired-by-code.ts'
import { nameFolding } from './migrations/0018-name-folding.ts'
import { one } from './rows.ts'
import { prepareSnapshots } from './snapshot.ts'
import { runTransaction } from './transaction.ts'

/** A migration at index n leads to version n + 1, which is stored in PRAGMA user_version. */
const migrations: readonly string[] = [
  initial,
  uploads,
  upkeep,
  contents,
  intents,
  intentDeadlines,
  uploadParts,
  kinds,
  previews,
  edits,
  names,
  trash,
  auditLog,
  privateBuckets,
  removeMetadata,
  itemExpiry,
  retiredByCode,
  nameFolding,
]

/** 'mbkt' in ASCII; `file catalog.db` prints it. */
const applicationId = 0x6d626b74

/** Migrates the database to this program's version; several processes may call it at the same time. */
export function migrate(db: DatabaseSync): void {
  // One snapshot, because another process may migrate it between two reads.
  if (prepareSnapshots(db).run(() => version(db)) === migrations.length) return
  runTransaction(db, () => {
    // Read again under the lock: another process may have migrated it.
    const current = version(db)
    for (const migration of migrations.slice(current)) db.exec(migration)
    db.exec(`PRAGMA user_version = ${migrations.length}; PRAGMA application_id = ${applicationId}`)
  })
}

/** The version of the catalog, 0 for an empty file. Throws CatalogVersionError if this program must not change it. */
function version(db: DatabaseSync): number {
  const number = (sql: string) => integer(one(db.prepare(sql)) ?? [], 0)
  const current = number('PRAGMA user_version')
  const owner = number('PRAGMA application_id')
  const tables = number('SELECT count(*) FROM sqlite_schema')
  if (owner !== applicationId && (owner !== 0 || current !== 0 || tables !== 0)) {
    throw new CatalogVersionError(
      `${db.location()} is a database of another program. Set MEDIABUCKET_DATA to another directory.`,
    )
  }
  if (current > migrations.length) {
    throw new CatalogVersionError(
      `${db.location()} has version ${current}, and this mediabucket supports versions up to ${migrations.length}. ` +
        'It was written by a newer mediabucket: run that one, or restore a backup made before the upgrade.',
    )
  }
  return current
}
