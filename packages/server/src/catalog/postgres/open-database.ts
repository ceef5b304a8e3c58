import { CatalogVersionError, DatabaseError } from '../catalog-errors.ts'
import { movedKey, movedText } from '../transfer.ts'
import { readMeta } from '../upkeep.ts'
import { type ConnectionOptions, type Connections, openConnections } from './connections.ts'
import { parseDatabaseUrl } from './database-address.ts'
import { migrate } from './migrate.ts'
import { ConnectionLost, sqlState } from './postgres-errors.ts'
import { runQuery } from './statements.ts'

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
