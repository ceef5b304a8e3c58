import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { databaseSettings } from './database.ts'
import { onServer, rowsOf } from './postgres.ts'

/** The catalog of a data directory, which tests read and change beside the program: constraints of foreign keys do not apply. */
export interface CatalogRows {
  readonly engine: 'sqlite' | 'postgres'
  /** Runs statements. */
  change(sql: string): Promise<void>
  /** The rows of one statement. */
  read(sql: string): Promise<Record<string, unknown>[]>
}

export async function catalogRows(data: string): Promise<CatalogRows> {
  const url = (await databaseSettings(data))['MEDIABUCKET_DATABASE_URL']
  if (url !== undefined)
    return {
      engine: 'postgres',
      change: (sql) => onServer(url, `SET session_replication_role = replica; ${sql}`),
      read: (sql) => rowsOf(url, sql),
    }
  const open = () =>
    new DatabaseSync(join(data, 'catalog.db'), {
      enableForeignKeyConstraints: false,
      timeout: 10_000,
      readBigInts: true,
    })
  const use = <T>(work: (db: DatabaseSync) => T): T => {
    const db = open()
    try {
      // Damage of a disk follows none either.
      db.exec('PRAGMA ignore_check_constraints = ON')
      return work(db)
    } finally {
      db.close()
    }
  }
  return {
    engine: 'sqlite',
    change: async (sql) => use((db) => db.exec(sql)),
    read: async (sql) =>
      use((db) =>
        db
          .prepare(sql)
          .all()
          .map((row) => ({ ...row })),
      ),
  }
}

/** The tables of the catalog. */
export async function tablesOf(rows: CatalogRows): Promise<string[]> {
  const found = await rows.read(
    rows.engine === 'sqlite'
      ? "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
      : "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1",
  )
  return found.map(({ name }) => String(name))
}

/** Keeps the rows of a PostgreSQL catalog in another schema. Returns a function that brings them back. */
export async function keepRows(rows: CatalogRows): Promise<() => Promise<void>> {
  const tables = await tablesOf(rows)
  const kept = tables.map((table) => `CREATE TABLE kept.${table} AS TABLE ${table}`)
  await rows.change(`CREATE SCHEMA kept; ${kept.join('; ')}`)
  const all = (table: string) => `(SELECT string_agg(r::text, '' ORDER BY r::text) FROM ${table} AS r)`
  // Only tables whose rows differ are written.
  const restored = tables.map(
    (table) => `IF ${all(table)} IS DISTINCT FROM ${all(`kept.${table}`)} THEN
    DELETE FROM ${table};
    INSERT INTO ${table} OVERRIDING SYSTEM VALUE SELECT * FROM kept.${table};
  END IF`,
  )
  return () => rows.change(`DO $$ BEGIN ${restored.join('; ')}; END $$`)
}
