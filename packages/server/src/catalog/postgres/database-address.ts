import type { ClientConfig } from 'pg'
import { parse, toClientConfig } from 'pg-connection-string'
import { DatabaseError } from '../catalog-errors.ts'

/** Where a database is, and how to connect. */
export interface DatabaseAddress {
  /** For the driver; contains the password. */
  readonly settings: ClientConfig
  /** For messages, without the password: host, port and name of the database. */
  readonly label: string
}

/** Reads a URL; `sslmode` has the meanings of libpq. Throws DatabaseError, without the URL in its message. */
export function parseDatabaseUrl(url: string): DatabaseAddress {
  try {
    const settings = toClientConfig(parse(url, { useLibpqCompat: true }))
    const { host = 'localhost', port = 5432, database = settings.user ?? '' } = settings
    return { settings, label: `${host}:${port}/${database}` }
  } catch (error) {
    throw new DatabaseError(
      `MEDIABUCKET_DATABASE_URL cannot be used: ${error instanceof Error ? error.message : 'it is malformed'}.`,
    )
  }
}
