import { type CatalogAudit, createAudit } from '../audit.ts'
import { openDatabase } from './open-database.ts'
import { asFault } from './postgres-errors.ts'
import { type Run, runQuery, runWork } from './statements.ts'
import { runTransaction } from './transaction.ts'

/** Opens the rows for a check. Throws DatabaseError and CatalogVersionError. */
export async function openPostgresAudit(url: string): Promise<CatalogAudit> {
  const connections = await openDatabase(url, { readers: 1, writers: 1, readTimeout: 0 })

  const run: Run = async (statement, ...values) => {
    try {
      return await connections.read((session) => session.run(statement, ...values))
    } catch (error) {
      throw asFault(error)
    }
  }

  return createAudit({
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
    change: (work) => runTransaction(connections, (session) => runWork(session, work()), 0),
    // PostgreSQL has tools of its own for its files: checksums, pg_amcheck.
    damage: async () => ({ details: [], rows: [], bytes: [] }),
    close: connections.close,
  })
}
