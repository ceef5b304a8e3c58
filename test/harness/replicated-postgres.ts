import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onServer, type PostgresServer, rowsOf, startPostgres, stopPostgres } from './postgres.ts'
import { until } from './until.ts'

/** A primary, and a synchronous standby that has every acknowledged commit. */
export interface ReplicatedPostgres extends AsyncDisposable {
  /** The URL of a database, with both servers. */
  url(database: string): string
  readonly primary: () => PostgresServer
  /** Kills the primary. */
  killPrimary(): Promise<void>
  /** Makes the standby the primary. */
  promote(): Promise<void>
  /** Replaces the killed server by a new synchronous standby on the same port. */
  addStandby(): Promise<void>
}

/** A standby looks for its primary often, because commits wait for it. */
const common = { wal_retrieve_retry_interval: '100ms' }

interface Member {
  readonly directory: string
  readonly server: PostgresServer
}

export async function startReplicatedPostgres(): Promise<ReplicatedPostgres> {
  const directory = await mkdtemp(join(tmpdir(), 'mediabucket-postgres-'))
  await chmod(directory, 0o755)
  let primary = await startMember('one')
  let standby = await startMember('two', {}, primary.server.port)
  const ports = [primary.server.port, standby.server.port]
  await waitForCommits()

  async function startMember(
    name: string,
    settings: Readonly<Record<string, number>> = {},
    of?: number,
  ): Promise<Member> {
    const own = join(directory, name)
    await mkdir(own)
    return { directory: own, server: await startPostgres(own, { ...common, ...settings }, of) }
  }

  /** From now on, the primary acknowledges a commit when the standby has it. A copy of the primary does not have this setting. */
  async function waitForCommits(): Promise<void> {
    const url = primary.server.url('postgres')
    await onServer(url, "ALTER SYSTEM SET synchronous_standby_names = '*'")
    await onServer(url, 'SELECT pg_reload_conf()')
    await until('a synchronous standby', async () => {
      const rows = await rowsOf(url, "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
      return rows.length === 1
    })
  }

  return {
    url(database) {
      const { href, port } = new URL(primary.server.url(database))
      return href.replace(`:${port}/`, `:${ports[0]},127.0.0.1:${ports[1]}/`)
    },
    primary: () => primary.server,
    killPrimary: () => primary.server.kill(),
    async promote() {
      await onServer(standby.server.url('postgres'), 'SELECT pg_promote()')
      ;[primary, standby] = [standby, primary]
    },
    async addStandby() {
      const { directory: own, server } = standby
      await rm(own, { recursive: true })
      standby = await startMember(
        own.endsWith('one') ? 'one' : 'two',
        { port: server.port },
        primary.server.port,
      )
      await waitForCommits()
    },
    async [Symbol.asyncDispose]() {
      for (const member of [standby, primary]) await stopPostgres(member.directory)
      await rm(directory, { recursive: true, force: true })
    },
  }
}
