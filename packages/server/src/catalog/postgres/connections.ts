import { Client, type ClientBase, type ClientConfig, Pool, type PoolClient, type PoolConfig } from 'pg'
import type { DatabaseAddress } from './database-address.ts'
import { ConnectionLost, isDead, isUnprepared } from './postgres-errors.ts'
import { connecting, orderServers, readTimeline, type Servers, selectServer } from './servers.ts'
import { openSession, type Preparation, type Session } from './session.ts'

/** Milliseconds. */
const defaultConnectTimeout = 5_000
const idleTimeout = 60_000
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
  const timeline = await readTimeline(client, servers.count > 1)
  if (timeline === 0) throw new ConnectionLost('the server is a read-only replica')
  if (!servers.isLatest(timeline)) throw new ConnectionLost('the server is a former primary')
  return timeline
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
