import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, globSync } from 'node:fs'
import { chmod, chown, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { freePort } from './free-port.ts'
import { oncePerRun } from './once-per-run.ts'
import { childrenOf, isRunning, signal } from './processes.ts'
import { needTools } from './tools.ts'
import { until } from './until.ts'

const run = promisify(execFile)

/** The directory of the newest server of Debian's packages, or null. */
const programs = globSync('/usr/lib/postgresql/*/bin/initdb').map(dirname).toSorted().at(-1) ?? null

/** A password that must not appear in logs. The server does not check it. */
export const databasePassword = 'unsafe-Geheim%40'

/** The directory of this run's server; it is set by the global set-up. */
const directoryVariable = 'MEDIABUCKET_TEST_POSTGRES'

/** A server that a test can stop. */
export interface PostgresServer {
  /** The URL of a database. */
  url(database: string): string
  readonly port: number
  /** Runs `pg_ctl`, for example with `stop -m immediate`. */
  control(...args: string[]): Promise<void>
  /** Kills all its processes (SIGKILL), and resolves when they have ended. */
  kill(): Promise<void>
}

/**
 * Creates a server in the directory and starts it; about a second. Root runs it as the user postgres. With the port of a primary, it
 * is a standby of it.
 */
export async function startPostgres(
  directory: string,
  settings: Readonly<Record<string, string | number>> = {},
  primary?: number,
): Promise<PostgresServer> {
  needTools('postgres')
  const port = Number(settings['port'] ?? (await freePort()))
  await chmod(directory, 0o755)
  const data = join(directory, 'data')
  await mkdir(data, { mode: 0o700 })
  const isRoot = process.getuid?.() === 0
  if (isRoot) {
    const { stdout } = await run('id', ['-u', 'postgres'])
    await chown(directory, Number(stdout), -1)
    await chown(data, Number(stdout), -1)
  }
  const execute = (name: string, ...args: string[]) => {
    const program = join(programs ?? '', name)
    return isRoot
      ? run('runuser', ['-u', 'postgres', '--', program, ...args], { cwd: '/' })
      : run(program, args, { cwd: '/' })
  }
  if (primary === undefined)
    await execute(
      'initdb',
      '-N',
      '-D',
      data,
      '-A',
      'trust',
      '-U',
      'postgres',
      '-E',
      'UTF8',
      '--locale=C.UTF-8',
    )
  else
    await execute(
      'pg_basebackup',
      ...['-h127.0.0.1', `-p${primary}`, '-Upostgres', '-D', data, '-R', '-cfast', '-N'],
    )
  const all = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: directory,
    max_connections: 200,
    shared_buffers: '32MB',
    // The files are lost with the machine. Syncs do not matter when processes end.
    fsync: 'off',
    ...settings,
  }
  const options = Object.entries(all).map(([name, value]) => `-c ${name}=${value}`)
  const control = async (...args: string[]) => {
    await execute('pg_ctl', '-D', data, '-w', '-l', join(directory, 'log'), '-o', options.join(' '), ...args)
  }
  await control('start')
  return { url: urlOf(port), port, control, kill: () => killPostgres(data) }
}

async function killPostgres(data: string): Promise<void> {
  const [id, , , port, sockets = ''] = (await readFile(join(data, 'postmaster.pid'), 'utf8')).split('\n')
  const pid = Number(id)
  // It starts no further process after its children are known.
  signal(pid, 'SIGSTOP')
  const all = [pid, ...childrenOf(pid)]
  for (const each of all) signal(each, 'SIGKILL')
  await until('the end of PostgreSQL', () => !all.some(isRunning))
  // The locks of a process that nobody has waited for would be in force.
  await rm(join(data, 'postmaster.pid'))
  await rm(join(sockets, `.s.PGSQL.${port}.lock`), { force: true })
}

const urlOf = (port: number) => (database: string) =>
  `postgres://postgres:${databasePassword}@127.0.0.1:${port}/${database}`

/** The server of this run. The first test that needs it starts it; it ends with the run. */
async function sharedPort(): Promise<number> {
  const directory = process.env[directoryVariable]
  if (directory === undefined) throw new Error(`${directoryVariable} is not set`)
  return Number(await oncePerRun(directory, async () => String((await startPostgres(directory)).port)))
}

let port: Promise<number> | null = null

const endConnections = `
  SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid();`

/** What is left of a database for the next test: nothing, or the tables of a catalog as they are created. */
const resets = {
  empty: `${endConnections}
  DROP SCHEMA public CASCADE;
  CREATE SCHEMA public;
  GRANT USAGE ON SCHEMA public TO PUBLIC`,
  // Rows of small tables are deleted: TRUNCATE creates the files of a table and of its indexes again, which takes ten times as long.
  catalog: `${endConnections}
  SET session_replication_role = replica;
  DO $$
  DECLARE
    _table record;
    _large text;
  BEGIN
    FOR _table IN
      SELECT relname, pg_relation_size(oid) AS size FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'meta' AND pg_relation_size(oid) > 0
    LOOP
      IF _table.size > 100000 THEN
        _large := concat_ws(', ', _large, _table.relname);
      ELSE
        EXECUTE 'DELETE FROM ' || _table.relname;
      END IF;
    END LOOP;
    IF _large IS NOT NULL THEN
      EXECUTE 'TRUNCATE ' || _large || ' CASCADE';
    END IF;
  END $$;
  SELECT setval(oid, 1, false) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'S';
  DELETE FROM meta WHERE key NOT IN ('epoch', 'version');
  INSERT INTO meta (key, value) VALUES ('place', '');
  UPDATE meta SET value = replace(gen_random_uuid()::text, '-', '') WHERE key = 'epoch'`,
}

/** Databases that tests of this process have left. After DROP DATABASE, the next CREATE DATABASE takes ten times as long. */
const left: Record<keyof typeof resets, string[]> = { empty: [], catalog: [] }

/**
 * Returns the URL of an empty database, and a function that ends all connections to it and leaves it for another test. With `catalog`, it
 * may have the tables of a new catalog, and a catalog must have been opened before its release.
 */
export async function createDatabase(
  reset: keyof typeof resets = 'empty',
): Promise<{ url: string; release(): Promise<void> }> {
  port ??= sharedPort()
  const url = urlOf(await port)
  const name = left[reset].pop() ?? (await newDatabase(url('postgres')))
  return {
    url: url(name),
    async release() {
      await onServer(url(name), resets[reset])
      left[reset].push(name)
    },
  }
}

async function newDatabase(server: string): Promise<string> {
  const name = `test_${randomBytes(8).toString('hex')}`
  await onServer(server, `CREATE DATABASE ${name}`)
  return name
}

/** Runs statements on a connection of their own. */
export async function onServer(url: string, statements: string): Promise<void> {
  await rowsOf(url, statements)
}

/** Runs one statement on a connection of its own, and returns its rows. */
export async function rowsOf(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(statement)).rows
  } finally {
    await client.end()
  }
}

/** Vitest's global set-up: the directory of the run's server, which ends with the run. */
export default async function preparePostgres(): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'mediabucket-postgres-'))
  process.env[directoryVariable] = directory
  return async () => {
    await stopPostgres(directory)
    await rm(directory, { recursive: true, force: true })
  }
}

/** Stops the server in the directory, if it is running. */
export async function stopPostgres(directory: string): Promise<void> {
  const data = join(directory, 'data')
  if (programs === null || !existsSync(join(data, 'postmaster.pid'))) return
  const stop = [join(programs, 'pg_ctl'), '-D', data, '-w', '-m', 'immediate', 'stop']
  const [program = '', ...args] = userInfo().uid === 0 ? ['runuser', '-u', 'postgres', '--', ...stop] : stop
  await run(program, args, { cwd: '/' })
}
