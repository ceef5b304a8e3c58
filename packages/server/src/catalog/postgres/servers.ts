import { Client, type ClientBase, type ClientConfig } from 'pg'
import { errorCode } from '../../core/error-code.ts'
import type { DatabaseAddress } from './database-address.ts'
import { ConnectionLost, isDead, sqlState } from './postgres-errors.ts'

/** The servers that a URL names: a primary and its replicas. After a failover, another one is the primary. */
export interface Servers {
  readonly count: number
  /** The server to which new connections are opened. */
  current(): ClientConfig
  /** Selects the next server if this one is still selected. */
  skip(failed: ClientConfig): void
  /**
   * Whether no server with a later timeline is known. A promotion begins a timeline with a higher number, so a writable server with
   * an earlier one is a former primary. With a single server, always true: its address may lead to a new installation.
   */
  isLatest(timeline: number): boolean
}

export function selectServer(servers: readonly ClientConfig[]): Servers {
  let selected = 0
  let latest = 0
  return {
    count: servers.length,
    current: () => servers[selected] ?? {},
    skip(failed) {
      if (servers[selected] === failed) selected = (selected + 1) % servers.length
    },
    isLatest(timeline) {
      latest = Math.max(latest, timeline)
      return timeline === latest || servers.length === 1
    },
  }
}

/** Milliseconds. */
const keepAliveDelay = 10_000
const timelineTimeout = 5_000

/** `readTimeout` (ms) is null if a pooler refuses timeouts as startup parameters. Then only the client limits the time of reads. */
const clientSettings = (
  server: ClientConfig,
  { connectTimeout, readTimeout }: { readonly connectTimeout: number; readonly readTimeout: number | null },
): ClientConfig => ({
  keepAlive: true,
  keepAliveInitialDelayMillis: keepAliveDelay,
  fallback_application_name: 'mediabucket',
  ...server,
  connectionTimeoutMillis: connectTimeout,
  ...(readTimeout !== null && { statement_timeout: readTimeout }),
})

/**
 * The servers of the address: the primary with the latest timeline first, then its replicas, then those that do not respond or refuse
 * the connection, as a replica does that has not replayed the creation of the database. Throws if no primary is among them and one
 * refuses, or if none responds.
 */
export async function orderServers(
  { servers }: DatabaseAddress,
  timeouts: Timeouts,
): Promise<ClientConfig[]> {
  const probes = await Promise.allSettled(
    servers.map((server) => probe(server, timeouts, servers.length > 1)),
  )
  const failures = probes.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
  const found = probes.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const refusal: unknown = failures.find((error) => !isDead(error))
  if (refusal !== undefined && !found.some(({ timeline }) => timeline > 0)) throw refusal
  if (found.length === 0) throw failures[0]
  const failed = servers.filter((_, index) => probes[index]?.status === 'rejected')
  return [
    ...found.toSorted((one, other) => other.timeline - one.timeline).map(({ settings }) => settings),
    ...failed.map((server) => clientSettings(server, timeouts)),
  ]
}

interface Timeouts {
  readonly connectTimeout: number
  readonly readTimeout: number
}

interface Probe {
  readonly settings: ClientConfig
  readonly timeline: number
}

async function probe(server: ClientConfig, timeouts: Timeouts, isOneOfSeveral: boolean): Promise<Probe> {
  const read = async (settings: ClientConfig) => ({
    settings,
    timeline: await probeTimeline(settings, isOneOfSeveral),
  })
  try {
    return await read(clientSettings(server, timeouts))
  } catch (error) {
    if (sqlState(error) !== '08P01') throw error
    return read(clientSettings(server, { ...timeouts, readTimeout: null }))
  }
}

async function probeTimeline(settings: ClientConfig, isOneOfSeveral: boolean): Promise<number> {
  const client = new Client(settings)
  // An error after the connection is established is reported by the next query too.
  client.on('error', () => undefined)
  try {
    await connecting(client.connect())
    return await connecting(readTimeline(client, isOneOfSeveral))
  } finally {
    await client.end()
  }
}

/**
 * The timeline that a primary writes; 0 for a replica. If there is only one server, returns 1 for a primary and does not read the
 * timeline, because some services that are compatible with PostgreSQL do not provide it.
 */
export async function readTimeline(client: ClientBase, isOneOfSeveral: boolean): Promise<number> {
  const query = {
    text: `SELECT CASE WHEN pg_is_in_recovery() THEN '0' WHEN $1::bool
      THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) ELSE '1' END AS timeline`,
    values: [isOneOfSeveral],
    query_timeout: timelineTimeout,
  }
  const { rows } = await client.query<{ timeline: string }>(query)
  return Number.parseInt(rows[0]?.timeline ?? '0', 16)
}

/** Converts errors of the network to ConnectionLost, because the driver throws many kinds of them. Errors of the server are unchanged. */
export async function connecting<T>(connection: Promise<T>): Promise<T> {
  try {
    return await connection
  } catch (error) {
    if (sqlState(error) !== null) throw error
    const reason = error instanceof Error ? error.message || errorCode(error) : null
    throw new ConnectionLost(reason ?? 'the connection failed', { cause: error })
  }
}
