import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Catalog } from '../packages/server/src/storage/catalog/catalog.ts'
import { openPostgresCatalog } from '../packages/server/src/storage/catalog/engines/postgres/postgres-catalog.ts'
import { openSqliteCatalog } from '../packages/server/src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { startDatabases } from './mediabucket.ts'

/** An empty catalog, and what a service on it needs. */
export interface EnginePlace {
  readonly engine: 'SQLite' | 'PostgreSQL'
  readonly directory: string
  readonly settings: Readonly<Record<string, string>>
  readonly open: () => Promise<Catalog>
}

/** Runs the work on SQLite, then on PostgreSQL, which shares the cores with the service. */
export async function onEachEngine<Result>(
  work: (place: EnginePlace) => Promise<Result>,
): Promise<readonly Result[]> {
  const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
  const databases = await startDatabases(scratch, 'together')
  try {
    const directory = join(scratch, 'sqlite')
    const onSqlite = await work({
      ...{ engine: 'SQLite', directory, settings: {} },
      open: () => openSqliteCatalog({ directory, writer: 'direct' }),
    })
    const url = await databases.open('service')
    const onPostgres = await work({
      ...{ engine: 'PostgreSQL', directory: join(scratch, 'files') },
      settings: { MEDIABUCKET_DATABASE_URL: url },
      open: () => openPostgresCatalog({ url, role: 'command' }),
    })
    return [onSqlite, onPostgres]
  } finally {
    await databases.stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}

export const percentile = (times: readonly number[], part: number): number =>
  times.toSorted((one, other) => one - other)[Math.floor(times.length * part)] ?? 0
