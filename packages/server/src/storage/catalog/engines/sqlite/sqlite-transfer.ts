import { constants, copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { nameKey } from '@mediabucket/client/rules'
import { nameLine } from '../../../../core/names.ts'
import { creationSettings } from '../../../sqlite.ts'
import { CatalogVersionError } from '../../catalog.ts'
import { bucketIds } from '../../checks/bucket-counters.ts'
import { correctStoredUsage } from '../../checks/usage-counters.ts'
import { laterMembers } from '../../items/item-columns.ts'
import { correctNames } from '../../items/item-names.ts'
import { isTrash } from '../../items/trash.ts'
import { insertKeys } from '../../objects/object-keys.ts'
import { integer, text } from '../../statements.ts'
import {
  type CatalogSource,
  type CatalogTarget,
  createSource,
  createTarget,
  type TransferEngine,
  transferKey,
} from '../../transfer.ts'
import { isNew, readMeta } from '../../upkeep.ts'
import { openForTransfer, unchanging, unmarkTransfer } from './data-directory.ts'
import { prepareInsertItem } from './item-table.ts'
import { prepareInsertEvents } from './sqlite-audit-log.ts'
import { all, createRun, one, readTimeout, runTransaction, withFaults } from './sqlite-database.ts'
import { firstVersion, hasSchema, migrate } from './sqlite-schema.ts'

export async function openSqliteSource(directory: string): Promise<CatalogSource> {
  return createSource(engineOf(openForTransfer(directory, readTimeout)))
}

export async function openSqliteTarget(directory: string): Promise<CatalogTarget> {
  const db = openForTransfer(directory)
  const markTrashed = db.prepare('UPDATE items SET home_seq = ?, deleted_at = ?, expires_at = ? WHERE id = ?')
  const addDamaged = db.prepare('INSERT INTO damaged (id) VALUES (?)')
  const insertItem = prepareInsertItem(db, laterMembers)
  const insertEvents = prepareInsertEvents(db)
  const run = createRun(db)
  const engine = engineOf(db)
  const target = createTarget(engine, {
    isUnfinished: async () =>
      (await engine.query(readMeta(transferKey))) !== null || (await engine.query(isNew())),

    addItems: (items) =>
      inTransaction(db, () => {
        for (const item of items) {
          insertItem(item.bucketId, item.seq, { ...item.item, bytes: item.bytes })
          if (item.trashed !== null)
            markTrashed.run(
              item.trashed.homeSeq,
              item.trashed.deletedAt,
              item.trashed.expiresAt,
              item.item.id,
            )
          if (item.isDamaged) addDamaged.run(item.item.id)
        }
        run(insertKeys(items))
      }),

    addEvents: (events) => inTransaction(db, () => insertEvents(events, ([time]) => time)),
  })
  return {
    ...target,
    async begin(state, buckets) {
      const last = await target.begin(state, buckets)
      unmarkTransfer(directory)
      return last
    },
  }
}

function engineOf(db: DatabaseSync): TransferEngine {
  const run = createRun(db)
  return {
    name: 'sqlite',
    query: async (query) => run(query),
    write: (work) => inTransaction(db, () => run(work())),
    async close() {
      if (db.isOpen) db.close()
    },
  }
}

async function inTransaction<T>(db: DatabaseSync, action: () => T): Promise<T> {
  return withFaults(() => runTransaction(db, action))
}

/** The versions of the catalogs of commits 7ac0c5b8 and 661e7aee, the last development versions. */
const developmentVersions = [18, 19]

/** The names of a table and of a column in these versions. */
const earlierNames: Readonly<Record<string, string>> = { items: 'media', item_id: 'media_id' }

/** Columns of this version that have a value for each row of earlier ones. */
const laterColumns: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  keyed_requests: { bucket_id: '(SELECT bucket_id FROM backup.tokens WHERE tokens.id = token_id)' },
}

/**
 * Copies the catalog of a backup into the directory of a new one; the copy is not synced. A backup of the last development versions gets the
 * schema of this one. Throws CatalogVersionError if an earlier one made the backup.
 */
export function copyBackup(backup: string, directory: string): void {
  const target = join(directory, 'catalog.db')
  const version = versionOf(backup)
  if (version > 0 && version < Math.min(...developmentVersions))
    throw new CatalogVersionError(
      `${backup} was written by an early development version: restore it with mediabucket of commit 7ac0c5b8, make a backup with that, and restore this backup with this version (docs/operations/upgrade.md).`,
    )
  if (!developmentVersions.includes(version) && !hasOtherTables(backup)) {
    copyFileSync(backup, target, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL)
    return
  }
  const db = new DatabaseSync(target, { returnArrays: true, enableForeignKeyConstraints: false })
  try {
    db.exec(`${creationSettings}; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF`)
    migrate(db)
    db.prepare('ATTACH ? AS backup').run(unchanging(backup).href)
    db.exec('BEGIN')
    for (const table of namesOf(
      db,
      "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    ))
      copyTable(db, table)
    db.function('name_key', (filename) => nameKey(nameLine(`${filename}`)))
    db.exec('UPDATE items SET name_key = name_key(filename) WHERE filename IS NOT NULL')
    const run = createRun(db)
    for (const id of run(bucketIds())) {
      run(correctNames(id))
      // These versions had no usage.
      if (!isTrash(id)) run(correctStoredUsage(id))
    }
    db.exec('COMMIT')
  } finally {
    db.close()
  }
}

/** Copies the columns that both tables have. Items of `mediabucket seed` had no bytes and no hash: the restore reports them. */
function copyTable(db: DatabaseSync, table: string): void {
  const columnsOf = (name: string) =>
    new Set(namesOf(db, `SELECT name FROM pragma_table_info('${name}', 'backup')`))
  const source = columnsOf(table).size > 0 ? table : (earlierNames[table] ?? table)
  const present = columnsOf(source)
  // These versions had no feed.
  if (present.size === 0) return
  const later = laterColumns[table] ?? {}
  const sourceOf = (column: string) => (present.has(column) ? column : earlierNames[column])
  const columns = namesOf(db, `SELECT name FROM pragma_table_info('${table}', 'main')`).filter(
    (column) => present.has(sourceOf(column) ?? '') || Object.hasOwn(later, column),
  )
  const values = columns.map((column) =>
    column === 'sha256' ? 'coalesce(sha256, zeroblob(32))' : (sourceOf(column) ?? later[column]),
  )
  // A table of which the backup has nothing.
  if (columns.length === 0) return
  // A new catalog has an epoch already.
  db.exec(
    `INSERT OR REPLACE INTO main.${table} (${columns.join()}) SELECT ${values.join()} FROM backup.${source}`,
  )
}

const namesOf = (db: DatabaseSync, sql: string): string[] => all(db.prepare(sql)).map((row) => text(row, 0))

/** Whether a backup of the version of this program has other tables. It is an interrupted one if it has none. */
function hasOtherTables(path: string): boolean {
  const db = new DatabaseSync(unchanging(path), { readOnly: true, returnArrays: true })
  try {
    return integer(one(db.prepare('PRAGMA user_version')) ?? [], 0) === firstVersion && !hasSchema(db)
  } finally {
    db.close()
  }
}

function versionOf(path: string): number {
  const db = new DatabaseSync(unchanging(path), { readOnly: true, returnArrays: true })
  try {
    return integer(one(db.prepare('PRAGMA user_version')) ?? [], 0)
  } finally {
    db.close()
  }
}
