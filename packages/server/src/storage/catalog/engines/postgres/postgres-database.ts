import { setTimeout as sleep } from 'node:timers/promises'
import { CatalogVersionError, DatabaseError, developmentText } from '../../catalog.ts'
import { type CatalogInspection, createInspection } from '../../checks/inspection.ts'
import { movedKey, movedText } from '../../moved-data.ts'
import { otherTablesText } from '../../schema-text.ts'
import { integer, text } from '../../statements.ts'
import { transferKey } from '../../transfer.ts'
import { type BlobsOwner, blobsOwner, readMeta } from '../../upkeep.ts'
import {
  beginTransaction,
  type ConnectionOptions,
  type Connections,
  commitTransaction,
  openConnections,
  parseDatabaseUrl,
  runTransaction,
} from './connections.ts'
import { schema } from './postgres-schema.ts'
import { schemaDifference } from './postgres-schema-check.ts'
import {
  asFault,
  ConnectionLost,
  isConflict,
  type Run,
  runQuery,
  runWork,
  type Session,
  sqlState,
} from './session.ts'

/**
 * Connects, and migrates the database to this program's version. Throws DatabaseError and CatalogVersionError, also if
 * `mediabucket migrate` has moved its rows.
 */
export const openDatabase = (url: string, options: ConnectionOptions): Promise<Connections> =>
  open(url, options, requireNotMoved)

/** As openDatabase, for `mediabucket migrate`. `atCreation` is executed in the transaction that creates the catalog. */
export const openDatabaseForTransfer = (
  url: string,
  options: ConnectionOptions,
  atCreation = '',
): Promise<Connections> => open(url, options, async () => undefined, atCreation)

/** Throws DatabaseError if the rows have moved. */
async function requireNotMoved(connections: Connections, label: string): Promise<void> {
  const settings = await connections.read((session) => runQuery(session.run, readMeta(movedKey)))
  if (settings !== null) throw new DatabaseError(movedText(`the database ${label}`, settings))
}

async function open(
  url: string,
  options: ConnectionOptions,
  check: (connections: Connections, label: string) => Promise<void>,
  atCreation = '',
): Promise<Connections> {
  const address = parseDatabaseUrl(url)
  try {
    const connections = await openConnections(address, options)
    try {
      await migrate(connections, address.label, atCreation)
      await check(connections, address.label)
      return connections
    } catch (error) {
      await connections.close()
      throw error
    }
  } catch (error) {
    throw explainOpenError(error, address.label)
  }
}

/** Turns an error of connecting into a DatabaseError; any other error is returned unchanged. */
export function explainOpenError(error: unknown, label: string): unknown {
  if (error instanceof DatabaseError || error instanceof CatalogVersionError || !(error instanceof Error))
    return error
  const state = sqlState(error) ?? ''
  const explained = (reason: string) =>
    new DatabaseError(`The database ${label} cannot be opened: ${reason}`, { cause: error })
  if (/^28/.test(state))
    return explained(`${error.message}. Check user and password in MEDIABUCKET_DATABASE_URL.`)
  if (state === '3D000') return explained(`${error.message}. Create it, or change MEDIABUCKET_DATABASE_URL.`)
  if (state === '3F000') return explained(`${error.message}. Create the schema, or correct search_path.`)
  if (state === '55P03')
    return explained('another process is migrating it. Wait for it to end, then start again.')
  if (/^(08|25006|40|53|57)/.test(state)) return explained(`${error.message}. Wait for it, then start again.`)
  if (error instanceof ConnectionLost)
    return explained(`${error.message}. Check MEDIABUCKET_DATABASE_URL, and whether the server is running.`)
  return state === '' ? error : explained(`${error.message} (SQLSTATE ${state}). See the log of its server.`)
}

/** Throws DatabaseError while the catalog has only a part of the rows that are transferred into it. */
export async function requireNoTransfer(connections: Connections): Promise<void> {
  if ((await connections.read((session) => runQuery(session.run, readMeta(transferKey)))) === null) return
  throw new DatabaseError(
    'The database is incomplete, because its migration was interrupted. Run the same mediabucket migrate again.',
  )
}

/** Returns whether the database contains a catalog, of any version; changes nothing. Throws DatabaseError. */
export const hasPostgresCatalog = (url: string): Promise<boolean> =>
  readUnopened(url, async (connections) => {
    const statement = "SELECT (to_regclass('meta') IS NOT NULL AND to_regclass('batches') IS NOT NULL)::int4"
    const [row = []] = await connections.read((session) => session.run(statement))
    return integer(row, 0) === 1
  })

/**
 * Of a catalog that openPostgresCatalog would open; null if there is none. Changes nothing. Throws as openPostgresCatalog does.
 */
export const readPostgresOwner = (url: string): Promise<BlobsOwner | null> =>
  readUnopened(url, async (connections, label) => {
    if ((await requireVersion(connections, label, released)) === 0) return null
    await requireNotMoved(connections, label)
    await requireNoTransfer(connections)
    return connections.read((session) => runQuery(session.run, blobsOwner()))
  })

/** Calls `read` with connections to a database that is not migrated. Throws DatabaseError. */
async function readUnopened<T>(
  url: string,
  read: (connections: Connections, label: string) => Promise<T>,
): Promise<T> {
  const address = parseDatabaseUrl(url)
  try {
    const connections = await openConnections(address, { readers: 1, writers: 1 })
    try {
      return await read(connections, address.label)
    } finally {
      await connections.close()
    }
  } catch (error) {
    throw explainOpenError(error, address.label)
  }
}

/** The version of the schema of the first release. Development versions have lower ones. */
const firstVersion = 14
/** The last development version, whose tables have earlier names. Commit 661e7aee writes it. */
const lastDevelopment = 13

interface Migration {
  /** The existing tables that it changes or refers to. */
  readonly tables: readonly string[]
  readonly statements: string
}

/**
 * The migration at index n leads from version 14 + n, which is stored in the table `meta`, to the next one. It is not edited once released.
 * postgres-schema.ts has the result of all of them.
 */
const released: readonly Migration[] = []

/** Any fixed number that other programs do not use. */
const lockKey = 7_815_112_036_441
/** Milliseconds that a process waits for another one that is migrating the database, and for servers that use its tables. */
const lockTimeout = 60_000
/** None: a migration of a large database can take hours. */
const migrationTimeout = 0
/** Milliseconds for each lock of a table, and to get all locks. Shorter than `deadlock_timeout` (1 s), so that no transaction of a server fails. */
const tableTimeout = 500
/** Milliseconds at most between two attempts, in which the transactions that waited for the migration continue. */
const retryPause = 250

/**
 * Locks the tables that migrations change, while servers of earlier versions use them. Each transaction of a server writes to `batches`
 * first, so no other one holds a lock once this is locked. Reads lock the other tables in any order: a migration that waited for one of
 * them, with another one locked, would be in a deadlock with them. So it gets all of them at once or none.
 */
const lockTables = (tables: readonly string[]) => `SET LOCAL lock_timeout = ${tableTimeout};
LOCK TABLE batches IN ACCESS EXCLUSIVE MODE;
DO $$
DECLARE
  _end timestamptz := clock_timestamp() + interval '${tableTimeout} ms';
BEGIN
  LOOP
    BEGIN
      LOCK TABLE ${tables.join(', ')} IN ACCESS EXCLUSIVE MODE NOWAIT;
      RETURN;
    EXCEPTION WHEN lock_not_available THEN
      IF clock_timestamp() > _end THEN
        RAISE;
      END IF;
    END;
    PERFORM pg_sleep(0.001);
  END LOOP;
END $$`

const oldestServer = 150_000

/**
 * Creates the catalog, or migrates it to this program's version; several processes may call it at the same time, while servers of earlier
 * versions are running. Executes `atCreation` in the transaction that creates the catalog. Throws DatabaseError and CatalogVersionError.
 */
export async function migrate(
  connections: Connections,
  label: string,
  atCreation = '',
  migrations = released,
): Promise<void> {
  const newest = firstVersion + migrations.length
  try {
    if ((await requireVersion(connections, label, migrations)) === newest) return
    const deadline = performance.now() + lockTimeout
    while (!(await tryMigration(connections, label, atCreation, migrations))) {
      if (performance.now() >= deadline)
        throw new DatabaseError(
          `The database ${label} cannot be upgraded, because its tables are in use. Wait for a backup or a long query to end, or stop the other servers, then start again.`,
        )
      await sleep(Math.random() * retryPause)
    }
  } catch (error) {
    if (sqlState(error) !== '42501') throw error
    throw new DatabaseError(
      `The database ${label} does not allow this user to create tables. Make the user its owner.`,
      { cause: error },
    )
  }
}

/**
 * The version of the catalog, 0 for an empty database. Changes nothing. Throws DatabaseError and CatalogVersionError if this program cannot
 * open it.
 */
const requireVersion = (
  connections: Connections,
  label: string,
  migrations: readonly Migration[],
): Promise<number> =>
  connections.read(async (session) => {
    const newest = firstVersion + migrations.length
    await requireServer(session, label)
    const present = await readVersion(session, label, newest)
    // After a migration, compare what `schema` has then.
    if (present === newest && migrations === released) await requireSchema(session, label, newest)
    return present
  })

/** False if transactions of other processes prevented it; then nothing was changed. */
async function tryMigration(
  connections: Connections,
  label: string,
  atCreation: string,
  migrations: readonly Migration[],
): Promise<boolean> {
  const newest = firstVersion + migrations.length
  let isAlone = false
  try {
    await connections.write(async (session) => {
      await beginTransaction(
        session,
        `SET LOCAL lock_timeout = ${lockTimeout}; SET LOCAL statement_timeout = ${migrationTimeout};
        SELECT pg_advisory_xact_lock(${lockKey})`,
      )
      // Read again under the lock: another process may have migrated it.
      const present = await readVersion(session, label, newest)
      isAlone = true
      const pending = present === 0 ? [] : migrations.slice(present - firstVersion)
      const tables = new Set(pending.flatMap((migration) => migration.tables))
      if (tables.size > 0) await session.execute(lockTables([...tables]))
      if (present === 0) await session.execute(schema + atCreation)
      for (const { statements } of pending) await session.execute(statements)
      await session.execute(
        `INSERT INTO meta (key, value) VALUES ('version', '${newest}')
        ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
      )
      await commitTransaction(session)
    }, migrationTimeout)
    return true
  } catch (error) {
    if (isConflict(error) || (isAlone && sqlState(error) === '55P03')) return false
    throw error
  }
}

async function requireServer(session: Session, label: string): Promise<void> {
  const [row = []] = await session.run(
    "SELECT current_setting('server_version_num')::int4, current_setting('server_encoding')",
  )
  if (integer(row, 0) < oldestServer)
    throw new DatabaseError(`The server of the database ${label} is older than PostgreSQL 15. Upgrade it.`)
  if (text(row, 1) !== 'UTF8')
    throw new DatabaseError(`The database ${label} does not use the encoding UTF8. Create one that does.`)
}

/** Throws CatalogVersionError unless the tables and functions are those of `schema`. */
async function requireSchema(session: Session, label: string, version: number): Promise<void> {
  const difference = await schemaDifference(session, schema)
  if (difference !== null)
    throw new CatalogVersionError(otherTablesText(`The database ${label}`, version, difference))
}

/** The version of the catalog, 0 for an empty database. Throws CatalogVersionError if this program must not change it. */
async function readVersion(session: Session, label: string, newest: number): Promise<number> {
  const [found = []] = await session.run(`SELECT (to_regclass('meta') IS NOT NULL)::int4,
    (SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace)`)
  const [hasMeta, tables] = [integer(found, 0) === 1, integer(found, 1)]
  if (!hasMeta && tables === 0) return 0
  const isOurs =
    hasMeta &&
    integer((await session.run("SELECT (to_regclass('batches') IS NOT NULL)::int4"))[0] ?? [], 0) === 1
  if (!isOurs)
    throw new CatalogVersionError(
      `The database ${label} contains tables of another program. Set MEDIABUCKET_DATABASE_URL to an empty database.`,
    )
  const [row] = await session.run("SELECT value FROM meta WHERE key = 'version'")
  const value = row ? text(row, 0) : null
  const present = Number(value)
  if (value === null || !/^[1-9]\d{0,8}$/.test(value))
    throw new CatalogVersionError(
      `The database ${label} is damaged: the row "version" of its table "meta" is ${value === null ? 'missing' : JSON.stringify(value.slice(0, 40))}. If this version of mediabucket wrote it, execute INSERT INTO meta (key, value) VALUES ('version', '${newest}') ON CONFLICT (key) DO UPDATE SET value = excluded.value; otherwise restore a backup with mediabucket restore.`,
    )
  if (present > newest)
    throw new CatalogVersionError(
      `The database ${label} has version ${present}, and this mediabucket supports versions up to ${newest}. ` +
        'It was written by a newer mediabucket: run that one, or restore a backup made before the upgrade.',
    )
  if (present < firstVersion)
    throw new CatalogVersionError(
      developmentText(`The database ${label}`, present === lastDevelopment ? '661e7aee' : '7ac0c5b8'),
    )
  return present
}

/** Opens the rows for a check. Throws DatabaseError and CatalogVersionError. */
export async function openPostgresInspection(url: string): Promise<CatalogInspection> {
  const connections = await openDatabase(url, { readers: 1, writers: 1, readTimeout: 0 })

  const run: Run = async (statement, ...values) => {
    try {
      return await connections.read((session) => session.run(statement, ...values))
    } catch (error) {
      throw asFault(error)
    }
  }

  return createInspection({
    name: 'postgres',
    query: (query) => runQuery(run, query),
    querySnapshot: (query) =>
      connections.read(async (session) => {
        await session.execute('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
        try {
          return await runQuery(session.run, query())
        } finally {
          await session.execute('COMMIT')
        }
      }),
    write: (work) => runTransaction(connections, (session) => runWork(session, work()), 0),
    // PostgreSQL has tools of its own for its files: checksums, pg_amcheck.
    damage: async () => ({ details: [], rows: [], bytes: [] }),
    close: () => connections.close(),
  })
}
