import type { DatabaseSync } from 'node:sqlite'
import { CatalogVersionError, developmentText } from '../catalog-errors.ts'
import { integer } from '../rows.ts'
import { one } from './rows.ts'
import { schema } from './schema.ts'
import { prepareSnapshots } from './snapshot.ts'
import { runTransaction } from './transaction.ts'

/** The version of the schema of the first release. Development versions have lower ones. */
const firstVersion = 20
/** The last development version, whose tables have earlier names. Commit 661e7aee writes it. */
const lastDevelopment = 19

/**
 * The migration at index n leads from version 20 + n, which is stored in PRAGMA user_version, to the next one. It is not edited once
 * released. schema.ts has the result of all of them.
 */
const released: readonly string[] = []

/** 'mbkt' in ASCII; `file catalog.db` prints it. */
const applicationId = 0x6d626b74

/** Creates the catalog, or migrates it to this program's version; several processes may call it at the same time. */
export function migrate(db: DatabaseSync, migrations = released): void {
  const newest = firstVersion + migrations.length
  // One snapshot, because another process may migrate it between two reads.
  if (prepareSnapshots(db).run(() => readVersion(db, newest)) === newest) return
  runTransaction(db, () => {
    // Read again under the lock: another process may have migrated it.
    const present = readVersion(db, newest)
    for (const statements of present === 0 ? [schema] : migrations.slice(present - firstVersion))
      db.exec(statements)
    db.exec(`PRAGMA user_version = ${newest}; PRAGMA application_id = ${applicationId}`)
  })
}

/** The version of the catalog, 0 for an empty file. Throws CatalogVersionError if this program must not change it. */
function readVersion(db: DatabaseSync, newest: number): number {
  const number = (sql: string) => integer(one(db.prepare(sql)) ?? [], 0)
  const present = number('PRAGMA user_version')
  const owner = number('PRAGMA application_id')
  const tables = number('SELECT count(*) FROM sqlite_schema')
  if (owner !== applicationId && (owner !== 0 || present !== 0 || tables !== 0)) {
    throw new CatalogVersionError(
      `${db.location()} is a database of another program. Set MEDIABUCKET_DATA to another directory.`,
    )
  }
  if (present > newest) {
    throw new CatalogVersionError(
      `${db.location()} has version ${present}, and this mediabucket supports versions up to ${newest}. ` +
        'It was written by a newer mediabucket: run that one, or restore a backup made before the upgrade.',
    )
  }
  if (present > 0 && present < firstVersion)
    throw new CatalogVersionError(
      developmentText(String(db.location()), present === lastDevelopment ? '661e7aee' : '7ac0c5b8'),
    )
  return present
}
