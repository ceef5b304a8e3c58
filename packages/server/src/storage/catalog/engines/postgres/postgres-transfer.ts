import { insertKeys } from '../../objects/object-keys.ts'
import {
  type CatalogRows,
  type CatalogSource,
  type CatalogTarget,
  createRows,
  createSource,
  createTarget,
  type TransferEngine,
  type TransferredItem,
  transferKey,
} from '../../transfer.ts'
import { readMeta } from '../../upkeep.ts'
import { type Connections, runTransaction } from './connections.ts'
import { transferStatement, transferValues } from './item-arrays.ts'
import { insertEvents } from './postgres-audit-log.ts'
import { openDatabase, openDatabaseForTransfer } from './postgres-database.ts'
import { asFault, type Run, runQuery, runWork, type Session } from './session.ts'

/** Reads that are not limited in time. */
const counts = { readers: 1, writers: 1, readTimeout: 0 }

/** Throws DatabaseError and CatalogVersionError. */
export async function openPostgresSource(url: string): Promise<CatalogSource> {
  return createSource(engineOf(await openDatabaseForTransfer(url, counts)))
}

/** Calls `work` with the rows as of one moment, while servers write. It may call `work` again if the connection is lost. */
export async function readPostgresSnapshot<T>(
  url: string,
  work: (source: CatalogRows) => Promise<T>,
): Promise<T> {
  const connections = await openDatabase(url, counts)
  try {
    return await connections.read(async (session) => {
      await session.execute('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
      const result = await work(createRows((query) => runQuery(session.run, query)))
      // An error is ignored: nothing was written, and the work must not be repeated after its end.
      await session.execute('COMMIT').catch(() => undefined)
      return result
    })
  } catch (error) {
    throw asFault(error)
  } finally {
    await connections.close()
  }
}

/** Marks the catalog, unless it has data or a mark. */
const mark = `INSERT INTO meta (key, value) SELECT '${transferKey}', '' WHERE NOT EXISTS (SELECT FROM buckets)
  ON CONFLICT DO NOTHING`

/** Throws DatabaseError and CatalogVersionError. */
export async function openPostgresTarget(url: string): Promise<CatalogTarget> {
  const connections = await openDatabaseForTransfer(url, { readers: 1, writers: 1 }, mark)
  const engine = engineOf(connections)

  const write = <T>(work: (session: Session) => Promise<T>): Promise<T> =>
    runTransaction(connections, work, 0)

  await write((session) => session.execute(mark)).catch(async (error: unknown) => {
    await connections.close()
    throw error
  })

  return createTarget(engine, {
    isUnfinished: async () => (await engine.query(readMeta(transferKey))) !== null,
    addItems: (items) => write((session) => insertItems(session, items)),
    addEvents: (events) => write((session) => insertEvents(session, events)),
  })
}

async function insertItems(session: Session, items: readonly TransferredItem[]): Promise<void> {
  await session.run(transferStatement, ...transferValues(items))
  await session.run(
    'INSERT INTO damaged (id) SELECT unnest($1::text[])',
    items.flatMap(({ item, isDamaged }) => (isDamaged ? [item.id] : [])),
  )
  await runWork(session, insertKeys(items))
}

function engineOf(connections: Connections): TransferEngine {
  const run: Run = async (statement, ...values) => {
    try {
      return await connections.read((session) => session.run(statement, ...values))
    } catch (error) {
      throw asFault(error)
    }
  }
  return {
    name: 'postgres',
    query: (query) => runQuery(run, query),
    write: (work) => runTransaction(connections, (session) => runWork(session, work()), 0),
    close: () => connections.close(),
  }
}
