import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onServer, startPostgres, stopPostgres } from '../test/harness/postgres.ts'
import { unmetLimits } from './mediabucket.ts'
import { runInTurn } from './rounds.ts'
import { small, uploading } from './small-uploads.ts'
import { measure, startSubject } from './subject.ts'

// node bench/compare-uploads.ts sqlite|postgres ROUNDS SECONDS NAME=PROGRAM…: the CPU of the service for an upload of 10 kB, of several
// versions in turn. A program is bin/mediabucket.js of a clone.

const [engine = '', rounds = '', seconds = '', ...programs] = process.argv.slice(2)
await using stack = new AsyncDisposableStack()
const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
stack.defer(() => rmSync(scratch, { recursive: true, force: true }))
execFileSync('chmod', ['755', scratch])

/** Starts PostgreSQL on the core of the load; returns the URL of a new database. */
async function openDatabases(): Promise<(name: string) => Promise<string>> {
  const directory = join(scratch, 'postgres')
  mkdirSync(directory)
  const server = await startPostgres(directory, { fsync: 'on', shared_buffers: '256MB' })
  stack.defer(() => stopPostgres(directory))
  const [pid = ''] = readFileSync(join(directory, 'data/postmaster.pid'), 'utf8').split('\n')
  execFileSync('taskset', ['-a', '-p', '-c', '1', pid])
  return async (name) => {
    await onServer(server.url('postgres'), `CREATE DATABASE ${name}`)
    return server.url(name)
  }
}

const newDatabase = engine === 'postgres' ? await openDatabases() : null
const cases = []
for (const [index, program] of programs.entries()) {
  const [name = '', bin = ''] = program.split('=')
  const url = await newDatabase?.(`version_${index}`)
  let token = ''
  const subject = await startSubject(
    name,
    ['node', bin, 'serve'],
    {
      ...unmetLimits,
      MEDIABUCKET_DATA: join(scratch, `data-${index}`),
      MEDIABUCKET_PORT: '0',
      MEDIABUCKET_LOG_LEVEL: 'warn',
      ...(url !== undefined && { MEDIABUCKET_DATABASE_URL: url }),
    },
    (printed) => {
      token = /mbkt_\w+/.exec(printed)?.[0] ?? ''
      return token === '' ? null : (/ready at (\S+)/.exec(printed)?.[1] ?? null)
    },
  )
  stack.defer(subject.stop)
  const run = () => measure(subject, '/', { ...uploading(32, small, token), seconds: Number(seconds) })
  cases.push({ id: name, run })
}
const rows = await runInTurn(cases, Number(rounds), (text) => console.error(text))
const least = rows[0]?.measure.cpuPerRequest ?? 0
for (const { id, measure: taken } of rows)
  console.log(
    `${engine}, ${id}: ${(taken.cpuPerRequest * 1e6).toFixed(1)} µs of CPU, ${(taken.cpuPerRequest / least).toFixed(3)} × the first, ${taken.perSecond.toFixed(0)} uploads/s`,
  )
