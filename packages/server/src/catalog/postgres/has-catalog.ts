import { integer } from '../rows.ts'
import { openConnections } from './connections.ts'
import { parseDatabaseUrl } from './database-address.ts'
import { explainOpenError } from './open-database.ts'

/** Returns whether the database contains a catalog, of any version; changes nothing. Throws DatabaseError. */
export async function hasPostgresCatalog(url: string): Promise<boolean> {
  const address = parseDatabaseUrl(url)
  try {
    const connections = await openConnections(address, { readers: 1, writers: 1 })
    try {
      const statement =
        "SELECT (to_regclass('meta') IS NOT NULL AND to_regclass('batches') IS NOT NULL)::int4"
      const [row = []] = await connections.read((session) => session.run(statement))
      return integer(row, 0) === 1
    } finally {
      await connections.close()
    }
  } catch (error) {
    throw explainOpenError(error, address.label)
  }
}
