import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { openPostgresCatalog } from '../packages/server/src/storage/catalog/engines/postgres/postgres-catalog.ts'
import { readChanges } from '../test/harness/wire.ts'
import { atMost, type Bar, barTable } from './bars.ts'
import { fillBuckets, fillCatalog } from './buckets.ts'
import { startDatabases, startMediabucket } from './mediabucket.ts'
import { measure, median, type Subject } from './subject.ts'

/** How often, and how many: the short form proves that the bench runs, and measures nothing. */
export interface FeedExtent {
  readonly rounds: number
  /** Of each measurement of the listing. */
  readonly seconds: number
  /** Uploads that are timed, one after the other. */
  readonly uploads: number
  readonly idleStreams: number
  readonly changes: number
}

export interface FeedResults {
  /** From the response to an upload to its event, by what was measured. Milliseconds. */
  readonly latencies: readonly {
    readonly name: string
    readonly longest: number
    readonly p50: number
    readonly p99: number
  }[]
  /** Growth of the resident memory by all idle streams. Bytes. */
  readonly idleMemory: number
  /** Of a page of another client. Milliseconds. */
  readonly listing: { readonly quiet: number; readonly besideStreams: number }
  readonly changesPerSecond: number
}

const batch = 100
/** Longest times from a response to its event. Milliseconds. */
const sameProcess = 20
const otherProcess = 200
/** Streams of a service with two workers. Each of them has some. */
const spreadStreams = 8

export async function benchFeed(extent: FeedExtent, report: (text: string) => void): Promise<FeedResults> {
  await using stack = new AsyncDisposableStack()
  const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
  stack.defer(() => rmSync(scratch, { recursive: true, force: true }))
  const databases = await startDatabases(scratch, 'together')
  stack.defer(databases.stop)
  const url = await databases.open('service')
  const buckets = [
    { bucket: 'uploads', items: 1 },
    { bucket: 'listed', items: 1000 },
    { bucket: 'changes', items: extent.changes },
  ]
  const data = join(scratch, 'data')
  const [ofSqlite, listed, changed] = await fillBuckets(data, buckets)
  const catalog = await openPostgresCatalog({ url, role: 'command' })
  const [ofPostgres] = await fillCatalog(catalog, buckets.slice(0, 1)).finally(catalog.close)
  if (!ofSqlite || !listed || !changed || !ofPostgres) throw new Error('no buckets')
  const start = async (directory: string, settings: Readonly<Record<string, string>> = {}) => {
    const started = await startMediabucket(directory, { MEDIABUCKET_LOG_LEVEL: 'warn', ...settings })
    stack.defer(started.stop)
    return started
  }
  const inDatabase = { MEDIABUCKET_DATABASE_URL: url }

  const latencies: FeedResults['latencies'][number][] = []
  const time = async (
    name: string,
    longest: number,
    parties: {
      readonly to: Subject
      readonly from: Subject
      readonly token: string
      readonly streams?: number
    },
  ) => {
    const taken = await timeEvents({ streams: 1, ...parties, uploads: extent.uploads })
    latencies.push({ name, longest, p50: quantile(taken, 0.5), p99: quantile(taken, 0.99) })
    report(`${name}: ${JSON.stringify(latencies.at(-1))}`)
  }
  const one = await start(join(scratch, 'one'), inDatabase)
  // Small files are in the database, so the second service needs the identity of the other files only.
  cpSync(join(scratch, 'one/blobs/.identity'), join(scratch, 'two/blobs/.identity'))
  const two = await start(join(scratch, 'two'), inDatabase)
  const { token } = ofPostgres
  await time('PostgreSQL, the same process', sameProcess, { to: one, from: one, token })
  await time('PostgreSQL, another process', otherProcess, { to: one, from: two, token })
  const spread = await start(data, { MEDIABUCKET_WORKERS: '2' })
  const workers = { to: spread, from: spread, token: ofSqlite.token, streams: spreadStreams }
  await time(`SQLite, the last of ${spreadStreams} streams of two workers`, otherProcess, workers)
  await spread.stop()
  const sqlite = await start(data)
  await time('SQLite, the same process', sameProcess, { to: sqlite, from: sqlite, token: ofSqlite.token })

  const rates: number[] = []
  const [quiet, beside, memory]: [number[], number[], number[]] = [[], [], []]
  const headers = [`Authorization: Bearer ${listed.token}`]
  const listing = () => measure(sqlite, '/api/media', { connections: 1, seconds: extent.seconds, headers })
  for (let round = 0; round < extent.rounds; round += 1) {
    rates.push(await readAll(sqlite, changed.token, extent.changes))
    quiet.push((await listing()).p99)
    const before = sqlite.rss()
    const streams = await Promise.all(
      Array.from({ length: extent.idleStreams }, () => openStream(sqlite, ofSqlite.token, () => {})),
    )
    beside.push((await listing()).p99)
    memory.push(sqlite.rss() - before)
    for (const stream of streams) stream.close()
    report(`round ${round}: ${JSON.stringify([rates.at(-1), quiet.at(-1), beside.at(-1), memory.at(-1)])}`)
  }
  return {
    latencies,
    // The first round has what later ones use again.
    idleMemory: Math.max(...memory),
    listing: { quiet: median(quiet), besideStreams: median(beside) },
    changesPerSecond: median(rates),
  }
}

const quantile = (taken: readonly number[], share: number): number =>
  taken.toSorted((one, other) => one - other)[Math.floor(taken.length * share)] ?? 0

/** The times from the response to an upload to its event on the last of the streams. Milliseconds. */
async function timeEvents(parties: {
  readonly to: Subject
  readonly from: Subject
  readonly token: string
  readonly streams: number
  readonly uploads: number
}): Promise<number[]> {
  const { to, from, token, uploads } = parties
  let arrived = 0
  let last = 0
  const streams = await Promise.all(
    Array.from({ length: parties.streams }, () =>
      openStream(to, token, () => {
        arrived += 1
        last = performance.now()
      }),
    ),
  )
  const taken: number[] = []
  for (let upload = 1; upload <= uploads; upload += 1) {
    const init = { method: 'POST', body: `${upload}`, headers: { authorization: `Bearer ${token}` } }
    const response = await fetch(`${from.url}/api/media`, init)
    const sent = performance.now()
    await response.arrayBuffer()
    while (arrived < upload * streams.length) await setTimeout(1)
    taken.push(Math.max(0, last - sent))
  }
  for (const stream of streams) stream.close()
  return taken
}

/** Opens a stream of changes; resolves when its response has begun. */
async function openStream(subject: Subject, token: string, onEvent: () => void): Promise<{ close(): void }> {
  const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' }
  const request = get(`${subject.url}/api/changes`, { headers, agent: false })
  const [response] = await once(request, 'response')
  let line = ''
  response.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (line + chunk).split('\n')
    line = lines.pop() ?? ''
    for (const one of lines) if (one.startsWith('data: ')) onEvent()
  })
  if (response.statusCode !== 200) throw new Error(`a stream receives ${response.statusCode}`)
  response.on('error', () => {})
  request.on('error', () => {})
  return { close: () => request.destroy() }
}

/** Reads the feed from its start in responses of a batch. Returns changes a second. */
async function readAll({ url }: Subject, token: string, changes: number): Promise<number> {
  const began = performance.now()
  let read = 0
  for (let after = ''; ; ) {
    const response = await fetch(`${url}/api/changes?limit=${batch}${after}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    const { data, next_cursor, has_more } = await readChanges(response)
    read += data.length
    after = `&after=${next_cursor}`
    if (!has_more) break
  }
  if (read !== changes) throw new Error(`the feed has ${read} changes of ${changes}`)
  return read / ((performance.now() - began) / 1_000)
}

/** The figures and their required values, as Markdown. */
export function reportFeed({ latencies, idleMemory, listing, changesPerSecond }: FeedResults): string {
  const bars: Bar[] = [
    ...latencies.map(({ name, longest, p99 }) =>
      atMost(`from the 201 to the event, p99: ${name}`, p99, longest, 'ms', ''),
    ),
    atMost('memory of the idle streams', idleMemory / 1e6, 30, 'MB', ''),
    atMost('listing beside the idle streams, p99', listing.besideStreams / listing.quiet, 1.2, '× quiet', ''),
    {
      name: `changes in responses of ${batch}`,
      must: '≥ 2,000 changes/s',
      aim: '',
      found: `${changesPerSecond.toFixed(0)} changes/s`,
      met: changesPerSecond >= 2_000,
    },
  ]
  const medians = latencies.map(({ name, p50 }) => `${p50.toFixed(1)} ms (${name})`).join(', ')
  return [
    ...barTable(bars),
    '',
    `From the 201 to the event, median: ${medians}. The p99 of the listing is ${listing.quiet.toFixed(2)} ms without streams.`,
  ].join('\n')
}
