import { execFile, execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { writeBundle } from '../packages/server/build.ts'
import { onServer, startPostgres, stopPostgres } from '../test/harness/postgres.ts'
import type { Pair } from '../test/harness/s3-door.ts'
import { loadCore, type Place, startSubject } from './subject.ts'

/** The program of the service; the tests set a bundle of it, which starts faster. */
const bin =
  process.env['MEDIABUCKET_BUNDLE'] ?? resolve(import.meta.dirname, '../packages/server/bin/mediabucket.js')

/** Rate limits that count every request and refuse none, and no limits of connections. */
export const unmetLimits = {
  MEDIABUCKET_MAX_CONNECTIONS: '0',
  MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS: '0',
  MEDIABUCKET_TOKEN_RATE: '999999999/1m',
  MEDIABUCKET_ADDRESS_RATE: '999999999/1m',
  MEDIABUCKET_AUTH_FAILURE_RATE: '999999999/1m',
}

/** The service with its default settings, except for these and the rate limits. */
export const startMediabucket = (
  data: string,
  settings: Readonly<Record<string, string>> = {},
  name = 'mediabucket',
  place: Place = 'apart',
) =>
  startSubject(
    name,
    ['node', bin, 'serve'],
    { MEDIABUCKET_DATA: data, MEDIABUCKET_PORT: '0', ...unmetLimits, ...settings },
    (printed) => /ready at (\S+)/.exec(printed)?.[1] ?? null,
    place,
  )

/** Creates a service token that may do everything, and returns its keys for the S3 protocol. */
export async function createPair(
  data: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<Pair> {
  const scopes = 'media:read,media:write,media:delete,buckets:manage'
  const command = ['token', 'create', '--service', '--scope', scopes, '--s3', '--json']
  const env = { PATH: process.env['PATH'], MEDIABUCKET_DATA: data, ...settings }
  const { stdout } = await promisify(execFile)(process.execPath, [bin, ...command], { env })
  const pair: { access_key_id: string; secret_access_key: string } = JSON.parse(stdout)
  return { accessKeyId: pair.access_key_id, secretAccessKey: pair.secret_access_key }
}

/** Starts PostgreSQL in `scratch`, on the core of the load if the subject is apart. `open` creates a database and returns its URL. */
export async function startDatabases(scratch: string, place: Place) {
  execFileSync('chmod', ['755', scratch])
  const directory = join(scratch, 'postgres')
  mkdirSync(directory)
  const server = await startPostgres(directory, { fsync: 'on', shared_buffers: '256MB' })
  const [pid = ''] = readFileSync(join(directory, 'data/postmaster.pid'), 'utf8').split('\n')
  if (place === 'apart') execFileSync('taskset', ['-a', '-p', '-c', loadCore, pid])
  return {
    async open(name: string): Promise<string> {
      await onServer(server.url('postgres'), `CREATE DATABASE ${name}`)
      return server.url(name)
    },
    stop: () => stopPostgres(directory),
  }
}

/** Writes the package as npm installs it into a directory, and returns its program. */
export async function writePackage(directory: string): Promise<string> {
  const root = resolve(import.meta.dirname, '..')
  cpSync(join(root, 'packages/server/bin'), join(directory, 'bin'), { recursive: true })
  cpSync(join(root, 'packages/server/package.json'), join(directory, 'package.json'))
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  await writeBundle(join(directory, 'dist'))
  return join(directory, 'bin/mediabucket.js')
}
