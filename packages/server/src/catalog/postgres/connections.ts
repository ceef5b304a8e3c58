import { Client, type ClientConfig, Pool, type PoolClient, type PoolConfig } from 'pg'
import { errorCode } from '../../core/error-code.ts'
import type { DatabaseAddress } from './database-address.ts'
import { ConnectionLost, isDead, isUnprepared, sqlState } from './postgres-errors.ts'
import { type Servers, selectServer } from './servers.ts'
import { openSession, type Preparation, type Session } from './session.ts'

/** Milliseconds. */
const connectTimeout = 5_000
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
}

/**
 * Behind a pooler that refuses timeouts as startup parameters, reads are limited by the client alone. The first server of the result is
 * the first one that responded.
 */
async function withStartupTimeouts(
  { servers }: DatabaseAddress,
  readTimeout: number,
): Promise<readonly ClientConfig[]> {
  const base = servers.map((server) => ({
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveDelay,
    fallback_application_name: 'mediabucket',
    ...server,
    connectionTimeoutMillis: connectTimeout,
  }))
  const bounded = base.map((server) => ({ ...server, statement_timeout: readTimeout }))
  let failure: unknown = null
  for (const [at, server] of bounded.entries()) {
    const from = <T>(all: readonly T[]) => [...all.slice(at), ...all.slice(0, at)]
    try {
      await probe(server)
      return from(bounded)
    } catch (error) {
      if (sqlState(error) === '08P01') return from(base)
      if (!isDead(error)) throw error
      failure = error
    }
  }
  throw failure
}

async function probe(settings: ClientConfig): Promise<void> {
  const client = new Client(settings)
  // An error after the connection is established is reported by the next query too.
  client.on('error', () => undefined)
  try {
    await connecting(client.connect())
  } finally {
    await client.end()
  }
}

export async function openConnections(
  address: DatabaseAddress,
  { readers, writers, readTimeout = defaultReadTimeout }: ConnectionOptions,
): Promise<Connections> {
  const servers = selectServer(await withStartupTimeouts(address, readTimeout))
  const preparation: Preparation = { named: true }
  const reading = openPool(servers, { max: readers })
  const writing = openPool(servers, { max: writers, pipeline: true })
  let closing: Promise<unknown> | null = null

  /** Tries each server once, beginning with the last one that was the primary. */
  async function connect(pool: Pool): Promise<PoolClient> {
    for (let left = servers.count; ; left -= 1) {
      const server = servers.current()
      try {
        return await connecting(pool.connect())
      } catch (error) {
        if (!isDead(error)) throw error
        servers.skip(server)
        if (left === 1) throw error
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

/**
 * Refuses a new connection to a replica: after a switchover, an old address or a proxy may lead to the former primary, whose rows
 * become stale. Behind a pooler this proves nothing; there grants are only read on the primary (require_primary).
 */
function requirePrimary(client: PoolClient, done: (error?: Error) => void): void {
  const query = { text: 'SELECT pg_is_in_recovery()::text AS found', query_timeout: connectTimeout }
  client.query<{ found: string }>(query).then(
    ({ rows }) =>
      rows[0]?.found === 'false' ? done() : done(new ConnectionLost('the server is a read-only replica')),
    (error: unknown) => done(error instanceof Error ? error : new Error(String(error))),
  )
}

function openPool(servers: Servers, settings: PoolConfig): Pool {
  const pool = new Pool({
    ...settings,
    connectionTimeoutMillis: connectTimeout,
    idleTimeoutMillis: idleTimeout,
    maxLifetimeSeconds: lifetime,
    verify: requirePrimary,
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
