import { randomUUID } from 'node:crypto'
import { faultyGateway, type Treatment } from '../../packages/server/test/storage/blobs/faulty-gateway.ts'
import { gateway, s3Settings } from '../harness/ceph.ts'
import { onServer, rowsOf } from '../harness/postgres.ts'
import type { ReplicatedPostgres } from '../harness/replicated-postgres.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { outcome } from '../harness/upkeep.ts'
import { type Instance, instanceOf } from './server-instances.ts'

/** Servers that share a database and an S3 store. */
export interface Cluster extends AsyncDisposable {
  /** The servers that run. */
  readonly running: () => readonly Instance[]
  start(): Promise<void>
  kill(instance: Instance): Promise<void>
  /** What happens to requests to the store. */
  treatStore(treatment: Treatment): void
  /** Runs one statement in the database, on its primary. */
  query(statement: string): Promise<Record<string, unknown>[]>
  /** Waits until each running server is ready, and no transaction is in progress. */
  idle(): Promise<void>
  /** Starts a server, which completes what was interrupted, stops all servers, and checks rows and bytes with `fsck --verify-bytes`. Returns what it reports, or null. */
  stopAndCheck(): Promise<string | null>
}

interface Options {
  readonly database: ReplicatedPostgres
  readonly servers: number
  readonly settings?: Readonly<Record<string, string>>
}

/** Starts servers on a new database and a new place in the store. */
export async function openCluster({ database, servers, settings = {} }: Options): Promise<Cluster> {
  const name = `cluster_${randomUUID().replaceAll('-', '')}`
  await onServer(database.primary().url('postgres'), `CREATE DATABASE ${name}`)
  let treatment: Treatment = 'pass'
  const store = await faultyGateway(await gateway(), () => treatment)
  const shared = {
    MEDIABUCKET_DATABASE_URL: database.url(name),
    ...(await s3Settings(store.endpoint)),
    // Some files are stored with their rows.
    MEDIABUCKET_INLINE_SIZE: '5kB',
    // The same in each server, so that their responses are equal.
    MEDIABUCKET_BASE_URL: 'http://media.example',
    ...settings,
  }
  const started: TestServer[] = []
  let running: readonly Instance[] = []
  let token = ''

  async function start(): Promise<void> {
    const server = await startServer(shared)
    started.push(server)
    token ||= server.token
    running = [...running, instanceOf(server, token)]
  }

  const query = (statement: string) => rowsOf(database.primary().url(name), statement)
  const transactions = `SELECT 1 FROM pg_stat_activity
    WHERE datname = '${name}' AND pid <> pg_backend_pid() AND xact_start IS NOT NULL`
  const isReady = async ({ server }: Instance) => (await fetch(`${server.url}/readyz`)).status === 200

  // The first one migrates the database and prints the token.
  for (let count = 0; count < servers; count += 1) await start()
  return {
    running: () => running,
    start,
    async kill(instance) {
      running = running.filter((other) => other !== instance)
      await instance.server.kill()
    },
    treatStore(next) {
      treatment = next
    },
    query,
    async idle() {
      for (const instance of running) await until('readiness', () => isReady(instance))
      await until('the end of all transactions', async () => (await query(transactions)).length === 0)
    },
    async stopAndCheck() {
      // Its first sweep completes the deletes that were interrupted.
      await start()
      await until('the end of deletes', async () => (await query('SELECT 1 FROM tombstones')).length === 0)
      const codes = await Promise.all(running.map(({ server }) => server.stop()))
      running = []
      if (codes.some((code) => code !== 0)) return `the servers exit with ${codes.join(', ')}`
      const { code, stdout, stderr } = await outcome(
        ['fsck', '--verify-bytes', '--grace', '1ms'],
        started[0]?.data ?? '',
        shared,
      )
      return code === 0 ? null : stdout + stderr
    },
    async [Symbol.asyncDispose]() {
      for (const server of started) await server[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
      await onServer(database.primary().url('postgres'), `DROP DATABASE ${name} WITH (FORCE)`)
    },
  }
}
