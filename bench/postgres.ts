import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { openPostgresCatalog } from '../packages/server/src/storage/catalog/engines/postgres/postgres-catalog.ts'
import { onServer, rowsOf } from '../test/harness/postgres.ts'
import { type Bucket, fillBuckets, fillCatalog } from './buckets.ts'
import { startDatabases, startMediabucket } from './mediabucket.ts'
import { type Row, runInTurn } from './rounds.ts'
import { small, uploading } from './small-uploads.ts'
import { type Measure, measure, runPinned, type Subject } from './subject.ts'

interface Extent {
  readonly rounds: number
  readonly seconds: number
  /** Items of the large bucket. */
  readonly large: number
}

const local = (path: string) => resolve(import.meta.dirname, path)

/**
 * Listings and small uploads of the service on PostgreSQL, against the service on SQLite and against loops in PostgreSQL. The service
 * runs on one core, PostgreSQL and the load on the other.
 */
export async function benchPostgres(extent: Extent, report: (text: string) => void): Promise<Row[]> {
  const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
  const stops: (() => Promise<void>)[] = []
  try {
    report('starting PostgreSQL')
    const databases = await startDatabases(scratch, 'apart')
    stops.push(databases.stop)
    const url = await databases.open('service')
    const loopUrl = await databases.open('loop')
    await (await openPostgresCatalog({ url: loopUrl, role: 'command' })).close()

    report('filling the buckets')
    const buckets = [
      { bucket: 'small', items: 30 },
      { bucket: 'large', items: extent.large, deleteEvery: 100 },
      // Apart from the small bucket, whose pages would grow.
      { bucket: 'uploads', items: 1 },
    ]
    const data = join(scratch, 'sqlite')
    const ofSqlite = await fillBuckets(data, buckets)
    const ofPostgres = await fillDatabase(url, buckets)
    await onServer(url, 'VACUUM ANALYZE')
    const [largeRow] = await rowsOf(url, "SELECT id FROM buckets WHERE name = 'large'")
    const largeId = String(largeRow?.['id'])

    const serve = async (name: string, directory: string, settings: Record<string, string>) => {
      const subject = await startMediabucket(directory, settings, name)
      stops.push(subject.stop)
      return subject
    }
    const inDatabase = { MEDIABUCKET_DATABASE_URL: url }
    const uncached = { MEDIABUCKET_CACHE: '0', MEDIABUCKET_LINKS: 'window' }
    const engines = [
      { name: 'SQLite', data, settings: {}, buckets: ofSqlite },
      { name: 'PostgreSQL', data: join(scratch, 'files'), settings: inDatabase, buckets: ofPostgres },
    ]
    const hotCases: Case[] = []
    for (const { name, data, settings, buckets } of engines) {
      const subject = await serve(name, data, settings)
      const headers = [`Authorization: Bearer ${bucketOf(buckets, 0).token}`]
      hotCases.push({
        id: `hot page, ${name}`,
        run: () =>
          measure(subject, '/api/media?page=2', { connections: 32, seconds: extent.seconds, headers }),
      })
      if (name === 'PostgreSQL') hotCases.push(...uploadCases(subject, bucketOf(buckets, 2), loopUrl, extent))
    }
    const hot = await runInTurn(hotCases, extent.rounds, report)
    // A data directory allows one server at a time.
    for (const stop of stops.splice(1).reverse()) await stop()

    const coldCases: Case[] = []
    const { pages } = bucketOf(ofSqlite, 1)
    const deep = Math.floor(pages * 0.9)
    const last = Math.min(pages - 1, deep + 99)
    for (const { name, data, settings, buckets } of engines) {
      const subject = await serve(name, data, { ...settings, ...uncached })
      const { token } = bucketOf(buckets, 1)
      for (const connections of [32, 1])
        coldCases.push({
          id: `cold page at 90 % depth, ${name}, ${connections} connections`,
          run: () =>
            measure(subject, '/', {
              connections,
              seconds: extent.seconds,
              script: [local('lua/random-pages.lua'), token, String(deep), String(last)],
            }),
        })
    }
    const offsets = [url, largeId, String(deep), String(last), String(extent.seconds)]
    coldCases.push({
      id: 'COUNT(*) and OFFSET at 90 % depth',
      run: () => runLoop(['yardsticks/offset-loop.ts', ...offsets], 0),
    })
    return [...hot, ...(await runInTurn(coldCases, extent.rounds, report))]
  } finally {
    for (const stop of stops.reverse()) await stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}

interface Case {
  readonly id: string
  readonly run: () => Promise<Measure>
}

function uploadCases(subject: Subject, { token }: Bucket, loopUrl: string, { seconds }: Extent): Case[] {
  const loop = [loopUrl, '1', '32', String(small), String(seconds)]
  return [
    {
      id: '10 kB in the loop of transactions of 32',
      run: () => runLoop(['yardsticks/insert-loop.ts', ...loop], small),
    },
    {
      id: '10 kB uploads, PostgreSQL',
      async run() {
        const measured = await measure(subject, '/', { ...uploading(32, small, token), seconds })
        return { ...measured, bytesPerSecond: measured.perSecond * small }
      },
    },
  ]
}

function bucketOf(buckets: readonly Bucket[], index: number): Bucket {
  const bucket = buckets[index]
  if (!bucket) throw new Error('no bucket')
  return bucket
}

async function fillDatabase(url: string, buckets: Parameters<typeof fillCatalog>[1]): Promise<Bucket[]> {
  const catalog = await openPostgresCatalog({ url, role: 'command' })
  return fillCatalog(catalog, buckets).finally(catalog.close)
}

/** Runs a loop on the subject's core. Its CPU time is not counted. */
async function runLoop([file = '', ...args]: readonly string[], size: number): Promise<Measure> {
  const printed = await runPinned('subject', ['node', local(file), ...args])
  const {
    taken,
    count = taken.length,
    seconds,
  }: { taken: number[]; count?: number; seconds: number } = JSON.parse(printed)
  const sorted = taken.toSorted((a, b) => a - b)
  const quantile = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0
  const perSecond = count / seconds
  return {
    perSecond,
    bytesPerSecond: perSecond * size,
    cpuPerRequest: 0,
    p50: quantile(0.5),
    p99: quantile(0.99),
  }
}
