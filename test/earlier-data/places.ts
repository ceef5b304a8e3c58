import { execFile } from 'node:child_process'
import { cp, mkdir, open, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { onServer, type PostgresServer, rowsOf, startPostgres } from '../harness/postgres.ts'
import { whileStopped } from '../harness/processes.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'

const run = promisify(execFile)

/** Data that can be set back to an earlier state. */
export interface Place {
  start(): Promise<TestServer>
  /** Saves the state while the service is running. */
  save(server: TestServer): Promise<void>
  /** Sets the data back to the saved state. Returns the service that has them then. */
  goBack(server: TestServer): Promise<TestServer>
}

const settings = { MEDIABUCKET_WEBHOOK_ALLOW: '127.0.0.1' }

/** The whole data directory, which is copied and replaced by the copy. */
export function copiedDirectory(directory: string): Place {
  const [data, copy] = [join(directory, 'data'), join(directory, 'copy')]
  const start = () => startServer(settings, data)
  return {
    start,
    save: (server) =>
      whileStopped(server, async () => {
        await rm(copy, { recursive: true, force: true })
        await run('cp', ['-a', data, copy])
      }),
    async goBack(server) {
      await server.kill()
      await rm(data, { recursive: true })
      await run('cp', ['-a', copy, data])
      return start()
    },
  }
}

/** Replaces the contents of files, so that they stay the same files, as a snapshot of a disk does. */
async function replaceContents(from: string, to: string): Promise<void> {
  const entries = await readdir(from, { withFileTypes: true })
  const names = new Set(entries.map(({ name }) => name))
  for (const name of await readdir(to)) if (!names.has(name)) await rm(join(to, name), { recursive: true })
  for (const entry of entries) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) {
      await mkdir(target, { recursive: true })
      await replaceContents(source, target)
    } else {
      await using file = await open(target, 'a')
      await file.truncate()
      await file.appendFile(await readFile(source))
    }
  }
}

/** A snapshot of the disk, on which all files are. */
export function diskSnapshot(directory: string): Place {
  const [data, copy] = [join(directory, 'data'), join(directory, 'copy')]
  const start = () => startServer(settings, data)
  return {
    ...copiedDirectory(directory),
    start,
    async goBack(server) {
      await server.kill()
      await replaceContents(copy, data)
      return start()
    },
  }
}

/** A snapshot of the disk with the rows; the bytes are on another one. */
export function catalogSnapshot(directory: string): Place {
  const [data, copy] = [join(directory, 'data'), join(directory, 'copy')]
  const files = ['catalog.db', 'catalog.db-wal']
  const start = () => startServer(settings, data)
  return {
    start,
    save: (server) =>
      whileStopped(server, async () => {
        await rm(copy, { recursive: true, force: true })
        await mkdir(copy)
        for (const name of files) await cp(join(data, name), join(copy, name))
      }),
    async goBack(server) {
      await server.stop()
      await rm(join(data, 'catalog.db-shm'), { force: true })
      for (const name of files) {
        await using file = await open(join(data, name), 'a')
        await file.truncate()
        await file.appendFile(await readFile(join(copy, name)))
      }
      return start()
    },
  }
}

const withDatabase = (directory: string, url: string) => () =>
  startServer({ ...settings, MEDIABUCKET_DATABASE_URL: url }, join(directory, 'data'))

/** Whether the service is running while its database is set back, or is stopped before and started afterwards. */
type ServiceState = 'running' | 'stopped'

/** Ends the leases of the saved state, which the next process would wait for. */
const releaseLeases = (url: string) => onServer(url, 'UPDATE webhooks SET owner = NULL, owned_until = NULL')

async function isReady(server: TestServer): Promise<void> {
  await until('readiness', async () => (await fetch(`${server.url}/readyz`)).status === 200)
}

/** A database that pg_dump has saved, and pg_restore writes back. */
export function dumpedDatabase(
  directory: string,
  postgres: PostgresServer,
  serviceState: ServiceState,
): Place {
  const [url, file] = [postgres.url('postgres'), join(directory, 'dump')]
  const start = withDatabase(directory, url)
  return {
    start,
    save: async () => void (await run('pg_dump', ['-Fc', '-f', file, url])),
    async goBack(server) {
      if (serviceState === 'stopped') await server.stop()
      // As an operator does: nobody writes between the removal of the tables and their return.
      await onServer(
        url,
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
        DROP SCHEMA public CASCADE; CREATE SCHEMA public`,
      )
      await run('pg_restore', ['--single-transaction', '-d', url, file])
      if (serviceState === 'stopped') {
        await releaseLeases(url)
        return start()
      }
      await isReady(server)
      return server
    },
  }
}

/** A snapshot of the disk of the database server. */
export function databaseSnapshot(
  directory: string,
  postgres: PostgresServer & { readonly data: string },
  serviceState: ServiceState,
): Place {
  const [url, copy] = [postgres.url('postgres'), join(directory, 'copy')]
  const start = withDatabase(directory, url)
  return {
    start,
    async save() {
      await postgres.control('-m', 'fast', 'stop')
      await rm(copy, { recursive: true, force: true })
      await run('cp', ['-a', postgres.data, copy])
      await postgres.control('start')
    },
    async goBack(server) {
      if (serviceState === 'stopped') await server.stop()
      await postgres.control('-m', 'fast', 'stop')
      await rm(postgres.data, { recursive: true })
      await run('cp', ['-a', copy, postgres.data])
      await postgres.control('start')
      if (serviceState === 'stopped') {
        await releaseLeases(url)
        return start()
      }
      await isReady(server)
      return server
    },
  }
}

/** A primary and an asynchronous replica, which does not receive the last commits and becomes the primary. */
export async function asynchronousReplica(directory: string, primary: PostgresServer): Promise<Place> {
  const own = join(directory, 'replica')
  await mkdir(own)
  const replica = await startPostgres(own, {}, primary.port)
  const url = primary
    .url('postgres')
    .replace(`:${primary.port}/`, `:${primary.port},127.0.0.1:${replica.port}/`)
  const [first, second] = [primary.url('postgres'), replica.url('postgres')]
  return {
    start: withDatabase(directory, url),
    async save() {
      const position = (await rowsOf(first, 'SELECT pg_current_wal_lsn()::text AS lsn'))[0]?.['lsn']
      await until('the replica has all commits', async () => {
        const [row] = await rowsOf(second, `SELECT pg_last_wal_replay_lsn() >= '${position}' AS has`)
        return row?.['has'] === true
      })
      await onServer(second, "ALTER SYSTEM SET primary_conninfo = ''")
      await onServer(second, 'SELECT pg_reload_conf()')
      await until('the end of the replication', async () => {
        return (await rowsOf(first, 'SELECT 1 FROM pg_stat_replication')).length === 0
      })
    },
    async goBack(server) {
      await primary.kill()
      await onServer(second, 'SELECT pg_promote()')
      await isReady(server)
      return server
    },
  }
}
