import type { ClientConfig } from 'pg'
import { parse, toClientConfig } from 'pg-connection-string'
import { splitDatabaseUrl } from '../../core/database-urls.ts'
import { DatabaseError } from '../catalog-errors.ts'

/** Where a database is, and how to connect. */
export interface DatabaseAddress {
  /** For the driver, one for each server; they contain the password. */
  readonly servers: readonly ClientConfig[]
  /** For messages, without the password: hosts, ports and name of the database. */
  readonly label: string
}

/** Reads a URL; `sslmode` has the meanings of libpq. Throws DatabaseError, without the URL in its message. */
export function parseDatabaseUrl(url: string): DatabaseAddress {
  const urls = splitDatabaseUrl(url)
  if (urls === null) throw unusable('it is malformed')
  requirePrimary(urls)
  requireKnownMode(urls)
  const servers = urls.map(({ href }) => {
    try {
      return toClientConfig(parse(href, { useLibpqCompat: true }))
    } catch (error) {
      throw unusable(error instanceof Error ? error.message : 'it is malformed')
    }
  })
  const hosts = servers.map(({ host = 'localhost', port = 5432 }) => `${host}:${port}`)
  const { database, user = '' } = servers[0] ?? {}
  return { servers, label: `${hosts.join(',')}/${database ?? user}` }
}

/** Only the primary is used, so a URL that requests another kind of server is rejected. */
function requirePrimary([first]: readonly URL[]): void {
  const wanted = first?.searchParams.get('target_session_attrs') ?? 'read-write'
  if (wanted !== 'read-write' && wanted !== 'primary')
    throw unusable('target_session_attrs must be read-write, because only the primary is used')
}

const sslModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full']

/** The driver would take any other mode for `require`, which does not verify the server. */
function requireKnownMode([first]: readonly URL[]): void {
  const mode = first?.searchParams.get('sslmode') ?? null
  if (mode !== null && !sslModes.includes(mode))
    throw unusable(`sslmode must be one of: ${sslModes.join(', ')}`)
}

const unusable = (reason: string) => new DatabaseError(`MEDIABUCKET_DATABASE_URL cannot be used: ${reason}.`)
