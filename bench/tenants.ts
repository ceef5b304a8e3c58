import { setTimeout } from 'node:timers/promises'
import { issueServiceToken } from '../packages/server/src/access/token-operations.ts'
import { UsageLog } from '../packages/server/src/http/usage-log.ts'
import type { Catalog } from '../packages/server/src/storage/catalog/catalog.ts'
import type { BucketId } from '../packages/server/src/storage/catalog/records.ts'
import { type Bar, barTable } from './bars.ts'
import { type EnginePlace, onEachEngine, percentile } from './engines.ts'
import { startMediabucket } from './mediabucket.ts'
import { seedBucket } from './seed.ts'
import type { Subject } from './subject.ts'

/** How many; the short form proves that the bench runs. */
export interface TenantsExtent {
  /** Buckets that are created over HTTP. */
  readonly buckets: number
  /** Lists by bytes. */
  readonly lists: number
  /** Items of the bucket that is deleted. */
  readonly items: number
  /** Pages of another bucket that are read before the deletion. */
  readonly pages: number
}

interface EngineResults {
  readonly engine: string
  /** Seconds in which the buckets are created. */
  readonly creation: number
  /** Of a list by bytes. Milliseconds. */
  readonly listP95: number
  /** CPU of the service for each creation and each list, as far as it is its own. Milliseconds. */
  readonly creationCpu: number
  readonly listCpu: number
  /** Until requests that all buckets have counted are stored, as every 40 s at the most. Milliseconds. */
  readonly usage: number
  /** Of a page of another bucket, before and during the removal of the deleted one. Milliseconds. */
  readonly quietP99: number
  readonly removalP99: number
  /** Seconds from the deletion until nothing of the bucket is left. */
  readonly removal: number
}

export interface TenantsResults {
  readonly extent: TenantsExtent
  readonly engines: readonly EngineResults[]
}

/** Requests at a time. */
const concurrency = 16

/** Every so many buckets have an item. */
const withItems = 10

/** Buckets of many customers, on each engine: they are created and listed over HTTP, and a large one is deleted while another one is read. */
export async function benchTenants(
  extent: TenantsExtent,
  report: (text: string) => void,
): Promise<TenantsResults> {
  const engines = await onEachEngine((place) => benchEngine(place, extent, report))
  return { extent, engines }
}

async function benchEngine(
  { engine, directory, open, settings: ofEngine }: EnginePlace,
  extent: TenantsExtent,
  report: (text: string) => void,
): Promise<EngineResults> {
  const settings = { ...ofEngine, MEDIABUCKET_LOG_LEVEL: 'warn', MEDIABUCKET_CACHE: '0' }
  const subject = await startMediabucket(directory, settings, engine, 'together')
  const catalog = await open()
  try {
    const service = await issueServiceToken(catalog, {
      ...{ name: 'bench', scopes: ['buckets:manage'], expiresAt: null, now: Date.now() },
    })
    const clients = { subject, manager: `Bearer ${service.token}` }
    const start = subject.cpu()
    const creation = await createBuckets(clients, extent.buckets)
    const created = subject.cpu()
    report(`${engine}: created ${extent.buckets} buckets in ${creation.toFixed(1)} s`)
    const listP95 = percentile(await listByBytes(clients, extent.lists), 0.95)
    const [creationCpu, listCpu] = [
      ((created - start) * 1_000) / extent.buckets,
      ((subject.cpu() - created) * 1_000) / extent.lists,
    ]
    report(`${engine}: p95 of a list ${listP95.toFixed(1)} ms`)
    const usage = await storeUsage(catalog, extent.buckets)
    report(`${engine}: usage of all buckets stored in ${usage.toFixed(0)} ms`)

    const other = `Bearer ${(await seedBucket(catalog, 'other', { items: 1_000 })).token}`
    await seedBucket(catalog, 'large', { items: extent.items })
    const quiet: number[] = []
    while (quiet.length < extent.pages) quiet.push(await pageTime(subject, other, quiet.length))
    const began = performance.now()
    await requireOk(request(clients, 'DELETE', '/api/buckets/large?items=delete'))
    const during: number[] = []
    while (during.length < extent.pages || (await catalog.deletedBucketAfter(0)) !== null)
      during.push(await pageTime(subject, other, during.length))
    while ((await catalog.deletedBucketAfter(0)) !== null) await setTimeout(10)
    const removal = (performance.now() - began) / 1_000
    const [quietP99, removalP99] = [percentile(quiet, 0.99), percentile(during, 0.99)]
    report(
      `${engine}: p99 of a page ${quietP99.toFixed(2)} ms, ${removalP99.toFixed(2)} ms during the removal of ${removal.toFixed(1)} s`,
    )
    return { engine, creation, listP95, creationCpu, listCpu, usage, quietP99, removalP99, removal }
  } finally {
    await catalog.close()
    await subject.stop()
  }
}

interface Clients {
  readonly subject: Subject
  readonly manager: string
}

const request = ({ subject, manager }: Clients, method: string, path: string, body?: object) =>
  fetch(`${subject.url}${path}`, {
    method,
    headers: { authorization: manager, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })

async function requireOk(responding: Promise<Response>): Promise<unknown> {
  const response = await responding
  const text = await response.text()
  if (!response.ok) throw new Error(`${response.status} ${text}`)
  return text === '' ? null : JSON.parse(text)
}

/** Returns the seconds. */
async function createBuckets(clients: Clients, count: number): Promise<number> {
  const began = performance.now()
  const numbers = Array.from({ length: count }, (_, number) => number).values()
  let seconds = 0
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (const number of numbers) {
        const body = {
          ...{ name: `customer-${number}`, max_bytes: 1_000_000_000, private: true },
          token: { scopes: ['media:read', 'media:write'] },
        }
        const created = Object(await requireOk(request(clients, 'POST', '/api/buckets', body)))
        if (number % withItems !== 0) continue
        const uploadBegan = performance.now()
        const headers = { authorization: `Bearer ${created.token.token}` }
        const init = { method: 'POST', body: 'x'.repeat(1 + (number % 1_000)), headers }
        await requireOk(fetch(`${clients.subject.url}/api/media`, init))
        seconds -= (performance.now() - uploadBegan) / 1_000 / concurrency
      }
    }),
  )
  return seconds + (performance.now() - began) / 1_000
}

/** Reads lists from the first one on, again and again. Returns the milliseconds of each. */
async function listByBytes(clients: Clients, count: number): Promise<number[]> {
  const times: number[] = []
  let after = ''
  while (times.length < count) {
    const began = performance.now()
    const list = Object(await requireOk(request(clients, 'GET', `/api/buckets?order=bytes&limit=50${after}`)))
    times.push(performance.now() - began)
    after = list.next_cursor === null ? '' : `&after=${list.next_cursor}`
  }
  return times
}

/** Stores a request of each bucket by itself and returns the milliseconds. */
async function storeUsage(catalog: Catalog, buckets: number): Promise<number> {
  const ids: BucketId[] = []
  for (let number = 0; number < buckets; number += 1) {
    const bucket = await catalog.findBucketNamed(`customer-${number}`)
    if (bucket !== null) ids.push(bucket.id)
  }
  const log = new UsageLog({
    ...{ catalog, now: Date.now, hasRoom: () => true },
    onFailure: (error) => {
      throw error
    },
  })
  for (const id of ids) log.countRequest(id, 'list')
  const began = performance.now()
  await log.close()
  return performance.now() - began
}

async function pageTime({ url }: Subject, authorization: string, number: number): Promise<number> {
  const began = performance.now()
  const init = { headers: { authorization } }
  await requireOk(fetch(`${url}/api/media?page=${1 + (number % 100)}`, init))
  return performance.now() - began
}

/** The figures and their required values, as Markdown. */
export function reportTenants({ extent, engines }: TenantsResults): string {
  const bars: Bar[] = engines.flatMap(({ engine, creation, listP95, usage, quietP99, removalP99 }) => [
    {
      name: `${extent.buckets} buckets with tokens created over HTTP, ${engine}`,
      ...{ must: '< 60 s', aim: '', found: `${creation.toFixed(1)} s`, met: creation < 60 },
    },
    {
      name: `a list of 50 by bytes, ${engine}, p95`,
      ...{ must: '≤ 20 ms', aim: '', found: `${listP95.toFixed(1)} ms`, met: listP95 <= 20 },
    },
    {
      name: `usage of ${extent.buckets} buckets stored, share of the time between, ${engine}`,
      ...{ must: '≤ 1 %', aim: '', found: `${(usage / 400).toFixed(2)} %`, met: usage <= 400 },
    },
    {
      name: `a page of another bucket while one of ${extent.items} items goes, ${engine}, p99`,
      ...{ must: '≤ 1.5 × quiet', aim: '', found: `${(removalP99 / quietP99).toFixed(2)} ×` },
      met: removalP99 <= 1.5 * quietP99,
    },
  ])
  const times = engines.map(
    ({ engine, creationCpu, listCpu, quietP99, removalP99, removal }) =>
      `${engine}: a creation takes ${creationCpu.toFixed(2)} ms of CPU of the service, a list ${listCpu.toFixed(2)} ms; p99 of a page ${quietP99.toFixed(2)} ms, and ${removalP99.toFixed(2)} ms during the removal, which takes ${removal.toFixed(0)} s.`,
  )
  return [...barTable(bars), '', ...times].join('\n')
}
