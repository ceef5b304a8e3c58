import { Socket } from 'node:net'
import { Client, type ClientBase, type ClientConfig, Pool, type PoolClient, type PoolConfig } from 'pg'
import { parse, toClientConfig } from 'pg-connection-string'
import { errorCode } from '../../../../core/faults.ts'
import { splitDatabaseUrl } from '../../../../core/storage-urls.ts'
import { DatabaseError } from '../../catalog.ts'
import {
  asFault,
  ConnectionLost,
  isConflict,
  isDead,
  isUnprepared,
  openSession,
  type Preparation,
  type Session,
  sqlState,
} from './session.ts'

/** Milliseconds. */
const defaultConnectTimeout = 5_000
const idleTimeout = 60_000
const defaultReadTimeout = 15_000
/** The client waits for a result of a read for this many timeouts, so that the server ends the statement first: a lost connection would be repeated. */
const resultTimeouts = 1.5
/** Seconds; then a connection is replaced, so that connections move to other servers after a change of addresses. */
const lifetime = 1_800

/** The connections of one process. The errors of work are those of Session; a wait for a connection is bounded. */
export interface Connections {
  /** Runs reads, which are repeated once if the connection was dead. */
  read<T>(work: (session: Session) => Promise<T>): Promise<T>
  /** Runs a transaction on one of the connections for writing. If it fails, the connection is closed. `timeout` (ms) limits each result. */
  write<T>(work: (session: Session) => Promise<T>, timeout?: number): Promise<T>
  /** Opens a connection to the primary that no other work uses; the caller ends it. */
  openClient(): Promise<Client>
  /** Waits until no connection is in use. */
  close(): Promise<void>
}

export interface ConnectionOptions {
  readonly readers: number
  readonly writers: number
  /** Milliseconds for a statement that reads; 0 for no limit. */
  readonly readTimeout?: number
  /** Milliseconds: for opening a connection, and for the wait while all are in use. */
  readonly connectTimeout?: number
  /** Called after each opening of a connection that several works use: after a failover, it leads to another server. */
  readonly onOpened?: () => void
}

export async function openConnections(
  address: DatabaseAddress,
  options: ConnectionOptions,
): Promise<Connections> {
  const { readTimeout = defaultReadTimeout, connectTimeout = defaultConnectTimeout } = options
  const servers = selectServer(await orderServers(address, { connectTimeout, readTimeout }))
  return new PooledConnections(servers, { ...options, readTimeout, connectTimeout })
}

class PooledConnections implements Connections {
  readonly #servers: Servers
  readonly #opened: Opened
  readonly #reading: Pool
  readonly #writing: Pool
  readonly #readResultTimeout: number
  readonly #preparation: Preparation = { named: true }
  #closing: Promise<unknown> | null = null

  constructor(servers: Servers, options: ConnectionOptions & Timeouts) {
    const { readers, writers, readTimeout, connectTimeout, onOpened = () => {} } = options
    this.#servers = servers
    this.#opened = { timelines: new WeakMap(), sockets: new WeakMap(), onOpened }
    this.#readResultTimeout = readTimeout * resultTimeouts
    const settings = { connectionTimeoutMillis: connectTimeout, pipeline: true }
    this.#reading = openPool(servers, this.#opened, { ...settings, max: readers })
    this.#writing = openPool(servers, this.#opened, { ...settings, max: writers })
  }

  async read<T>(work: (session: Session) => Promise<T>): Promise<T> {
    try {
      return await this.#usePrepared(this.#reading, this.#readResultTimeout, work)
    } catch (error) {
      if (!isDead(error)) throw error
      return this.#usePrepared(this.#reading, this.#readResultTimeout, work)
    }
  }

  write<T>(work: (session: Session) => Promise<T>, timeout?: number): Promise<T> {
    return this.#usePrepared(this.#writing, timeout, work)
  }

  async openClient(): Promise<Client> {
    const client = new Client(this.#servers.current())
    client.on('error', () => undefined)
    try {
      await connecting(client.connect())
      await connecting(requirePrimary(client, this.#servers))
      return client
    } catch (error) {
      await client.end().catch(() => undefined)
      throw error
    }
  }

  async close(): Promise<void> {
    this.#closing ??= Promise.all([this.#reading.end(), this.#writing.end()])
    await this.#closing
  }

  /** Repeats the work without named statements if they cannot be used. Its transaction has failed, so it changed nothing. */
  async #usePrepared<T>(
    pool: Pool,
    timeout: number | undefined,
    work: (session: Session) => Promise<T>,
  ): Promise<T> {
    try {
      return await this.#use(pool, timeout, work)
    } catch (error) {
      if (!isUnprepared(error)) throw error
      this.#preparation.named = false
      return this.#use(pool, timeout, work)
    }
  }

  async #use<T>(pool: Pool, timeout: number | undefined, work: (session: Session) => Promise<T>): Promise<T> {
    const client = await this.#connect(pool)
    let failure: unknown = null
    try {
      const destroy = () => this.#opened.sockets.get(client)?.destroy()
      return await work(openSession(client, this.#preparation, destroy, timeout))
    } catch (error) {
      failure = error
      throw error
    } finally {
      // After an error of a prepared statement, a transaction may still be open.
      const isUnusable = pool === this.#writing || isDead(failure) || isUnprepared(failure)
      client.release(failure !== null && isUnusable)
    }
  }

  /** Tries each server once, beginning with the last one that was the primary. */
  async #connect(pool: Pool): Promise<PoolClient> {
    for (let left = this.#servers.count; ; ) {
      const server = this.#servers.current()
      try {
        const client = await connecting(pool.connect())
        if (this.#servers.isLatest(this.#opened.timelines.get(client) ?? 0)) return client
        // It was opened before a failover.
        client.release(true)
      } catch (error) {
        left -= 1
        if (!isDead(error) || isQueueTimeout(error)) throw error
        this.#servers.skip(server)
        if (left === 0) throw error
      }
    }
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

/** What is known of the clients of the pools. */
interface Opened {
  readonly onOpened: () => void
  readonly timelines: WeakMap<ClientBase, number>
  readonly sockets: WeakMap<ClientBase, Socket>
}

function openPool(servers: Servers, { timelines, sockets, onOpened }: Opened, settings: PoolConfig): Pool {
  const pool = new Pool({
    ...settings,
    idleTimeoutMillis: idleTimeout,
    maxLifetimeSeconds: lifetime,
    verify: (client, done) =>
      void requirePrimary(client, servers).then(
        (timeline) => {
          timelines.set(client, timeline)
          done()
          onOpened()
        },
        (error: unknown) => done(error instanceof Error ? error : new Error(String(error))),
      ),
    Client: class extends Client {
      constructor(config?: ClientConfig) {
        const socket = new Socket()
        super({ ...config, ...servers.current(), stream: () => socket })
        sockets.set(this, socket)
      }
    },
  })
  // The pool removes an idle connection that fails; the work on a connection in use receives the error itself.
  pool.on('error', () => undefined)
  pool.on('connect', (client) => client.on('error', () => undefined))
  return pool
}

/** The servers that a URL names: a primary and its replicas. After a failover, another one is the primary. */
interface Servers {
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

function selectServer(servers: readonly ClientConfig[]): Servers {
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
async function orderServers({ servers }: DatabaseAddress, timeouts: Timeouts): Promise<ClientConfig[]> {
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
async function readTimeline(client: ClientBase, isOneOfSeveral: boolean): Promise<number> {
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
async function connecting<T>(connection: Promise<T>): Promise<T> {
  try {
    return await connection
  } catch (error) {
    if (sqlState(error) !== null) throw error
    const reason = error instanceof Error ? error.message || errorCode(error) : null
    throw new ConnectionLost(reason ?? 'the connection failed', { cause: error })
  }
}

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
  requirePrimaryTarget(urls)
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
function requirePrimaryTarget([first]: readonly URL[]): void {
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

/** Milliseconds. A transaction that waits longer for a lock fails, and so does one whose process stalls. */
export const lockTimeout = 10_000
const statementTimeout = 30_000
const transactionIdleTimeout = 30_000

/**
 * Begins a transaction that can write. The settings are of the transaction, because behind a connection pooler a connection has
 * none. On a replica the first write fails (25006); READ WRITE here would fail with 0A000, which says less. A commit is durable
 * whatever the database's default is.
 */
const begin = `BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = ${lockTimeout}; SET LOCAL statement_timeout = ${statementTimeout};
SET LOCAL idle_in_transaction_session_timeout = ${transactionIdleTimeout}; SET LOCAL synchronous_commit = on`

/** Sends the beginning without waiting for its result, which the first statement of the transaction waits for. */
export const beginTransaction = (session: Session, statements = ''): Promise<string> =>
  session.execute(`${begin};${statements}`)

/** The server rolled back a transaction that a statement had failed. */
export class TransactionFailed extends Error {
  override readonly name = 'TransactionFailed'
}

/** Throws TransactionFailed if the server rolled back instead. After any other error the outcome is unknown, or not final (CommitUnconfirmed). */
export async function commitTransaction(session: Session): Promise<void> {
  const command = await session.commit()
  if (command !== 'COMMIT') throw new TransactionFailed(`the server ran ${command} instead of COMMIT`)
}

/** Attempts to run a transaction that failed because of another one. */
const attempts = 4

/**
 * Runs one transaction, for commands; again if it was the victim of a deadlock. Its statements are not limited in time, and each result by
 * `timeout` (ms), if it is given. Other errors are not resolved: the outcome of a commit may be unknown. Throws Fault.
 */
export async function runTransaction<T>(
  connections: Pick<Connections, 'write'>,
  work: (session: Session) => Promise<T>,
  timeout?: number,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1)
    try {
      return await connections.write(async (session) => {
        await beginTransaction(session, 'SET LOCAL statement_timeout = 0')
        const result = await work(session)
        await commitTransaction(session)
        return result
      }, timeout)
    } catch (error) {
      if (attempt === attempts || !isConflict(error)) throw asFault(error)
    }
}
