import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openPostgresCatalog } from '../packages/server/src/storage/catalog/engines/postgres/postgres-catalog.ts'
import { openSqliteCatalog } from '../packages/server/src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { onServer } from '../test/harness/postgres.ts'
import { describeBucket, type ItemBucket, labelsOf } from './item-buckets.ts'
import { type ItemRequest, reads, writes } from './item-requests.ts'
import { startDatabases, startMediabucket } from './mediabucket.ts'
import type { Row } from './rounds.ts'
import { seedBucket } from './seed.ts'
import { type Measure, median, type Subject } from './subject.ts'

/** How many: the short form proves that the bench runs, and measures nothing. */
export interface ItemsExtent {
  readonly rounds: number
  /** Requests of each case in each round. */
  readonly batch: number
  /** Items of the two buckets on SQLite; the bucket on PostgreSQL has as many as the small one. */
  readonly small: number
  readonly large: number
  /** Lines of a stream that are read. */
  readonly lines: number
  /** Seconds for which lists are read while others search, and as long before that. */
  readonly seconds: number
}

export interface ItemsResults {
  readonly rows: readonly Row[]
  /** The 95th percentiles of the searches by their titles, in milliseconds. */
  readonly searchTimes: ReadonlyMap<string, number>
  readonly others: readonly string[]
  /** The growth of the peak of resident memory during the stream of the large bucket. Bytes. */
  readonly streamMemory: number
}

/** A bucket on an engine. */
interface Target {
  readonly name: 'small' | 'large' | 'PostgreSQL'
  readonly subject: Subject
  readonly bucket: ItemBucket
}

/** The title of a case of a target. */
export const titleOf = (id: string, target: Target['name']): string => `${id}, ${target}`

const settings = {
  // Pages are found and rendered for each request, and have ten links.
  MEDIABUCKET_CACHE: '0',
  MEDIABUCKET_LINKS: 'window',
}

/** Sends the same requests to a small and a large bucket on SQLite, and to a small one on PostgreSQL, in turn. */
export async function benchItems(extent: ItemsExtent, report: (text: string) => void): Promise<ItemsResults> {
  const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
  const stops: (() => Promise<void>)[] = []
  try {
    const data = join(scratch, 'data')
    const [small, large] = await fillSqlite(data, extent, report)
    const serve = async (directory: string, more: Readonly<Record<string, string>>, name: string) => {
      // On both cores, as in use: their times count, and a search has a thread of its own.
      const subject = await startMediabucket(directory, { ...settings, ...more }, name, 'together')
      stops.push(subject.stop)
      return subject
    }
    const sqlite = await serve(data, {}, 'SQLite')
    const targets: Target[] = [
      { name: 'small', subject: sqlite, bucket: small },
      { name: 'large', subject: sqlite, bucket: large },
    ]
    report('starting PostgreSQL')
    const databases = await startDatabases(scratch, 'together')
    stops.push(databases.stop)
    const url = await databases.open('service')
    const bucket = await fillPostgres(url, extent.small, report)
    const files = join(scratch, 'files')
    const subject = await serve(files, { MEDIABUCKET_DATABASE_URL: url }, 'PostgreSQL')
    targets.push({ name: 'PostgreSQL', subject, bucket })

    const taken = [
      ...(await inTurn(targets, reads, extent, report)),
      ...(await inTurn(targets, writes, extent, report)),
    ]
    const rows = taken.map(
      ({ id, times, cpu, bytes }): Row => ({ id, measure: measureOf(times, cpu, bytes) }),
    )
    const searchTimes = new Map(taken.map(({ id, times }) => [id, percentile(times, 0.95)]))
    let streamMemory = 0
    for (const target of targets) {
      report(`stream, ${target.name}`)
      const { measure, memory } = await stream(target, extent.lines)
      if (target.name === 'large') streamMemory = memory
      rows.push({ id: titleOf(streamed, target.name), measure })
    }
    for (const target of targets.filter(({ name }) => name !== 'large')) {
      report(`lists beside searches, ${target.name}`)
      rows.push(...(await listBesideSearches(target, extent.seconds)))
    }
    const others = [...reads, ...writes].flatMap(({ id, searchTime }) =>
      searchTime === undefined ? [id] : [],
    )
    return { rows, searchTimes, streamMemory, others }
  } finally {
    for (const stop of stops.reverse()) await stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}

export const streamed = 'lines of a stream from the middle'
export const quiet = 'newest first, 50 a second'
export const besideSearches = 'newest first, 50 a second, while eight people search'

/** The times of the requests of a case, in milliseconds, and what they took together. */
interface Taken {
  readonly id: string
  readonly times: readonly number[]
  /** Seconds. */
  readonly cpu: number
  readonly bytes: number
}

async function fillSqlite(
  directory: string,
  { small, large }: ItemsExtent,
  report: (text: string) => void,
): Promise<[ItemBucket, ItemBucket]> {
  const catalog = await openSqliteCatalog({ directory, writer: 'direct' })
  try {
    for (const items of [small, large]) {
      report(`filling a bucket with ${items} items`)
      await seedBucket(catalog, `of-${items}`, { items, labelsOf })
    }
    return [await describeBucket(catalog, `of-${small}`), await describeBucket(catalog, `of-${large}`)]
  } finally {
    await catalog.close()
  }
}

async function fillPostgres(url: string, items: number, report: (text: string) => void): Promise<ItemBucket> {
  report(`filling a bucket with ${items} items`)
  const catalog = await openPostgresCatalog({ url, role: 'command' })
  try {
    await seedBucket(catalog, 'seeded', { items, labelsOf })
    return await describeBucket(catalog, 'seeded')
  } finally {
    await catalog.close()
    await onServer(url, 'VACUUM ANALYZE')
  }
}

/** Sends the requests of each case to all targets, round after round, so that changes on the machine affect all of them. */
async function inTurn(
  targets: readonly Target[],
  cases: typeof reads,
  { rounds, batch }: ItemsExtent,
  report: (text: string) => void,
): Promise<Taken[]> {
  const taken = new Map<string, { times: number[]; cpu: number; bytes: number }>()
  // The first round is a warm-up and is not counted, unless it is the only one.
  for (let round = rounds > 1 ? 0 : 1; round <= rounds; round += 1) {
    report(`round ${round}`)
    for (const { id, isEmpty = false, next } of cases) {
      for (const target of targets) {
        const title = titleOf(id, target.name)
        const entry = taken.get(title) ?? { times: [], cpu: 0, bytes: 0 }
        const before = target.subject.cpu()
        const responses = []
        for (let index = 0; index < batch; index += 1)
          responses.push(await send(target, next(target.bucket, round * batch + index)))
        if (round === 0) continue
        if (responses.some((response) => response.isEmpty === !isEmpty))
          throw new Error(`a list of "${title}" has ${isEmpty ? 'items' : 'none'}`)
        taken.set(title, {
          times: [...entry.times, ...responses.map(({ milliseconds }) => milliseconds)],
          cpu: entry.cpu + target.subject.cpu() - before,
          bytes: entry.bytes + responses.reduce((sum, { bytes }) => sum + bytes, 0),
        })
      }
    }
  }
  return [...taken].map(([id, entry]) => ({ id, ...entry }))
}

const percentile = (times: readonly number[], share: number): number =>
  times.toSorted((one, other) => one - other)[Math.floor(times.length * share)] ?? 0

function measureOf(times: readonly number[], cpu: number, bytes: number): Measure {
  const seconds = times.reduce((sum, time) => sum + time, 0) / 1000
  return {
    perSecond: times.length / seconds,
    bytesPerSecond: bytes / seconds,
    cpuPerRequest: cpu / times.length,
    p50: median(times),
    p99: percentile(times, 0.99),
  }
}

const agent = new Agent({ keepAlive: true })

/** The start of a list without items, and that of a search that ended at its bound before it found one (docs/interface.md K13). */
const [emptyList, unfinishedList] = ['{"data":[]', '{"data":[],"next_cursor":"']

/**
 * Sends one request, and reads the response to its end. `isEmpty` is null if a search found nothing before its bound. Rejects on a status
 * other than 2xx.
 */
function send(
  { subject, bucket }: Target,
  { method, path, body }: ItemRequest,
): Promise<{ milliseconds: number; bytes: number; isEmpty: boolean | null }> {
  const text = body === undefined ? '' : JSON.stringify(body)
  const headers = {
    authorization: `Bearer ${bucket.token}`,
    ...(text === '' ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
  }
  return new Promise((resolve, reject) => {
    const start = performance.now()
    const sent = httpRequest(new URL(path, subject.url), { method, headers, agent }, (response) => {
      let [bytes, head] = [0, '']
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (head.length < unfinishedList.length) head += chunk.toString('latin1', 0, unfinishedList.length)
      })
      response.on('end', () => {
        if (response.statusCode === undefined || response.statusCode >= 300)
          reject(new Error(`${method} ${path} was answered with ${response.statusCode}`))
        else {
          const isEmpty = head.startsWith(unfinishedList) ? null : head.startsWith(emptyList)
          resolve({ milliseconds: performance.now() - start, bytes, isEmpty })
        }
      })
    })
    sent.on('error', reject)
    sent.end(text)
  })
}

/** Reads lists at a fixed rate, first alone, then while eight clients search for what no name has, each a second after its last response. */
async function listBesideSearches(target: Target, seconds: number): Promise<Row[]> {
  const list = { method: 'GET', path: '/api/items?order=newest&limit=50' }
  async function read(id: string): Promise<Row> {
    const before = target.subject.cpu()
    const sent: ReturnType<typeof send>[] = []
    for (let index = 0; index < seconds * 50; index += 1) {
      sent.push(send(target, list))
      await sleep(20)
    }
    const responses = await Promise.all(sent)
    const times = responses.map(({ milliseconds }) => milliseconds)
    const bytes = responses.reduce((sum, response) => sum + response.bytes, 0)
    return { id: titleOf(id, target.name), measure: measureOf(times, target.subject.cpu() - before, bytes) }
  }
  const alone = await read(quiet)
  let isOver = false
  const people = Array.from({ length: 8 }, async (_, index) => {
    await sleep(index * 125)
    while (!isOver) {
      await send(target, { method: 'GET', path: `/api/items?name=qzxqzx${index}` })
      await sleep(1000)
    }
  })
  const beside = await read(besideSearches)
  isOver = true
  await Promise.all(people)
  return [alone, beside]
}

/** Reads lines of a stream from the middle of the bucket. */
async function stream(
  { subject, bucket }: Target,
  lines: number,
): Promise<{ measure: Measure; memory: number }> {
  const { oldest } = bucket.cursors
  const after = oldest[oldest.length >> 1] ?? ''
  subject.resetPeak()
  const [start, cpu, before] = [performance.now(), subject.cpu(), subject.peakRss()]
  const response = await fetch(`${subject.url}/api/items?after=${after}`, {
    headers: { authorization: `Bearer ${bucket.token}`, accept: 'application/x-ndjson' },
  })
  let [count, bytes] = [0, 0]
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength
    for (const byte of chunk) if (byte === 10) count += 1
    if (count >= lines) break
  }
  const milliseconds = performance.now() - start
  if (count < lines) throw new Error(`a stream ended after ${count} lines`)
  return {
    measure: {
      perSecond: (count * 1000) / milliseconds,
      bytesPerSecond: (bytes * 1000) / milliseconds,
      cpuPerRequest: (subject.cpu() - cpu) / count,
      p50: milliseconds,
      p99: milliseconds,
    },
    memory: subject.peakRss() - before,
  }
}
