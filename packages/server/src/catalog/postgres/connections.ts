import { Client, type ClientBase, type ClientConfig, Pool, type PoolClient, type PoolConfig } from 'pg'
import { errorCode } from '../../core/error-code.ts'
import type { DatabaseAddress } from './database-address.ts'
import { ConnectionLost, isDead, isUnprepared, sqlState } from './postgres-errors.ts'
import { type Servers, selectServer } from './servers.ts'
import { openSession, type Preparation, type Session } from './session.ts'

/** Milliseconds. */
const defaultConnectTimeout = 5_000
const idleTimeout = 60_000
const keepAliveDelay = 10_000
const defaultReadTimeout = 15_000
/** Seconds; then a connection is replaced, so that connections move to other servers after a change of addresses. */
const lifetime = 1_800

/** The connections of one process. The errors of work are those of Session; a wait for a connection is bounded. */
export interface Connections {
  /** Runs reads, which are repeated once if the connection was dead. */
  read<T>(work: (session: Session) => Promise<T>): Promise<T>
  /** Runs a transaction on one of the connections for writing. If it fails, the connection is closed. `timeout` (ms) limits each result. */
  write<T>(work: (session: Session) => Promise<T>, timeout?: number): Promise<T>
  /** Waits until no connection is in use. */
  close(): Promise<void>
}

export interface ConnectionOptions {
  readonly readers: number
  readonly writers: number
  /** Milliseconds; 0 for no limit. */
  readonly readTimeout?: number
  /** Milliseconds: for opening a connection, and for the wait while all are in use. */
  readonly connectTimeout?: number
}

/** `readTimeout` (ms) is null behind a pooler that refuses timeouts as startup parameters: there reads are limited by the client alone. */
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
 * The servers of the address: the primary with the latest timeline first, those that do not respond last. Throws if none responds, or
 * if one refuses the connection for another reason.
 */
async function orderServers({ servers }: DatabaseAddress, timeouts: Timeouts): Promise<ClientConfig[]> {
  const probes = await Promise.allSettled(servers.map((server) => probe(server, timeouts)))
  const failures = probes.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
  const found = probes.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const refusal: unknown = failures.find((error) => !isDead(error))
  if (refusal !== undefined) throw refusal
  if (found.length === 0) throw failures[0]
  const silent = servers.filter((_, index) => probes[index]?.status === 'rejected')
  return [
    ...found.toSorted((one, other) => other.timeline - one.timeline).map(({ settings }) => settings),
    ...silent.map((server) => clientSettings(server, timeouts)),
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

async function probe(server: ClientConfig, timeouts: Timeouts): Promise<Probe> {
  const read = async (settings: ClientConfig) => ({ settings, timeline: await probeTimeline(settings) })
  try {
    return await read(clientSettings(server, timeouts))
  } catch (error) {
    if (sqlState(error) !== '08P01') throw error
    return read(clientSettings(server, { ...timeouts, readTimeout: null }))
  }
}

async function probeTimeline(settings: ClientConfig): Promise<number> {
  const client = new Client(settings)
  // An error after the connection is established is reported by the next query too.
  client.on('error', () => undefined)
  try {
    await connecting(client.connect())
    return await connecting(readTimeline(client))
  } finally {
    await client.end()
  }
}

export async function openConnections(
  address: DatabaseAddress,
  options: ConnectionOptions,
): Promise<Connections> {
  const { readers, writers, readTimeout = defaultReadTimeout } = options
  const { connectTimeout = defaultConnectTimeout } = options
  const servers = selectServer(await orderServers(address, { connectTimeout, readTimeout }))
  const preparation: Preparation = { named: true }
  const timelines = new WeakMap<ClientBase, number>()
  const reading = openPool(servers, timelines, { max: readers, connectionTimeoutMillis: connectTimeout })
  const writing = openPool(servers, timelines, {
    max: writers,
    connectionTimeoutMillis: connectTimeout,
    pipeline: true,
  })
  let closing: Promise<unknown> | null = null

  /** Tries each server once, beginning with the last one that was the primary. */
  async function connect(pool: Pool): Promise<PoolClient> {
    for (let left = servers.count; ; ) {
      const server = servers.current()
      try {
        const client = await connecting(pool.connect())
        if (servers.isLatest(timelines.get(client) ?? 0)) return client
        // It was opened before a failover.
        client.release(true)
      } catch (error) {
        left -= 1
        if (!isDead(error) || isQueueTimeout(error)) throw error
        servers.skip(server)
        if (left === 0) throw error
      }
    }
  }

  async function use<T>(pool: Pool, timeout: number | undefined, work: (session: Session) => Promise<T>) {
    const client = await connect(pool)
    let failure: unknown = null
    try {
      return await work(openSession(client, preparation, timeout))
    } catch (error) {
      failure = error
      throw error
    } finally {
      // After an error of a prepared statement, a transaction may still be open.
      client.release(failure !== null && (pool === writing || isDead(failure) || isUnprepared(failure)))
    }
  }

  /** Repeats the work without named statements if they cannot be used. Its transaction has failed, so it changed nothing. */
  async function usePrepared<T>(
    pool: Pool,
    timeout: number | undefined,
    work: (session: Session) => Promise<T>,
  ) {
    try {
      return await use(pool, timeout, work)
    } catch (error) {
      if (!isUnprepared(error)) throw error
      preparation.named = false
      return use(pool, timeout, work)
    }
  }

  return {
    async read(work) {
      try {
        return await usePrepared(reading, readTimeout, work)
      } catch (error) {
        if (!isDead(error)) throw error
        return usePrepared(reading, readTimeout, work)
      }
    },
    write: (work, timeout) => usePrepared(writing, timeout, work),
    async close() {
      closing ??= Promise.all([reading.end(), writing.end()])
      await closing
    },
  }
}

/** All connections were in use, which says nothing about the server. */
const isQueueTimeout = (error: unknown): boolean =>
  error instanceof ConnectionLost && error.message === 'timeout exceeded when trying to connect'

/**
 * Refuses a new connection to a replica: after a switchover, an old address or a proxy may lead to the former primary, whose rows
 * become stale. Behind a pooler this proves nothing; there grants are only read on the primary (require_primary). Also refuses a former
 * primary that was started again.
 */
async function requirePrimary(client: ClientBase, servers: Servers): Promise<number> {
  const timeline = await readTimeline(client)
  if (timeline === 0) throw new ConnectionLost('the server is a read-only replica')
  if (!servers.isLatest(timeline)) throw new ConnectionLost('the server is a former primary')
  return timeline
}

/** The timeline that a primary writes; 0 for a replica. */
async function readTimeline(client: ClientBase): Promise<number> {
  const text = `SELECT CASE WHEN pg_is_in_recovery() THEN '0' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline`
  const query = { text, query_timeout: defaultConnectTimeout }
  const { rows } = await client.query<{ timeline: string }>(query)
  return Number.parseInt(rows[0]?.timeline ?? '0', 16)
}

function openPool(servers: Servers, timelines: WeakMap<ClientBase, number>, settings: PoolConfig): Pool {
  const pool = new Pool({
    ...settings,
    idleTimeoutMillis: idleTimeout,
    maxLifetimeSeconds: lifetime,
    verify: (client, done) =>
      void requirePrimary(client, servers).then(
        (timeline) => {
          timelines.set(client, timeline)
          done()
        },
        (error: unknown) => done(error instanceof Error ? error : new Error(String(error))),
      ),
    Client: class extends Client {
      constructor(config?: ClientConfig) {
        super({ ...config, ...servers.current() })
      }
    },
  })
  // The pool removes an idle connection that fails; the work on a connection in use receives the error itself.
  pool.on('error', () => undefined)
  pool.on('connect', (client) => client.on('error', () => undefined))
  return pool
}

/** The driver reports failures of the network as errors of many kinds. */
async function connecting<T>(connection: Promise<T>): Promise<T> {
  try {
    return await connection
  } catch (error) {
    if (sqlState(error) !== null) throw error
    const reason = error instanceof Error ? error.message || errorCode(error) : null
    throw new ConnectionLost(reason ?? 'the connection failed', { cause: error })
  }
}
