import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { atMost, type Bar, barTable } from './bars.ts'
import { fillBuckets } from './buckets.ts'
import { writePackage } from './mediabucket.ts'
import { limitMemory } from './memory-limit.ts'
import { photograph } from './photograph.ts'
import { startSubject } from './subject.ts'

/** The short form proves that the bench runs, and measures nothing. */
export interface MemoryExtent {
  readonly seconds: number
  /** Pixels of the pictures; the height is three quarters of it. */
  readonly width: number
  /** Small files that are in the bucket before. */
  readonly files: number
}

export interface MemoryResults {
  /** Processes that the kernel has killed, and ends of the service. */
  readonly kills: number
  /** Responses that are neither successful nor a documented refusal because the service is busy, and backups that failed. */
  readonly failures: number
  /** Bytes, without the cache of files. */
  readonly peak: number
  readonly counts: Readonly<Record<string, number>>
}

const limit = 256 * 2 ** 20
const [uploaders, listers, viewers] = [16, 4, 4]
/** Each client deletes its earlier pictures, so that the disk does not fill. */
const kept = 5
/** Statuses that say that the service has too much to do. */
const busy: ReadonlySet<number> = new Set([429, 503])

/** Runs the service and backups of it in a control group of 256 MiB, as in a container, under everything that takes memory at once. */
export async function benchMemory(
  { seconds, width, files }: MemoryExtent,
  report: (text: string) => void,
): Promise<MemoryResults> {
  const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
  const group = limitMemory(limit)
  try {
    report('making pictures')
    const pictures = [await photograph(width), await photograph(width), await photograph(width)]
    const program = await writePackage(scratch)
    const data = join(scratch, 'data')
    const [bucket] = await fillBuckets(data, [{ bucket: 'everything', items: files }])
    if (!bucket) throw new Error('no bucket')
    const settings = { HOME: scratch, MEDIABUCKET_DATA: data, MEDIABUCKET_PORT: '0' }
    const noLimits = { MEDIABUCKET_TOKEN_RATE: '999999999/1m', MEDIABUCKET_ADDRESS_RATE: '999999999/1m' }
    const command = [...group.prefix, 'node', program]
    const service = await startSubject(
      'mediabucket',
      [...command, 'serve'],
      { ...settings, ...noLimits },
      (printed) => /ready at (\S+)/.exec(printed)?.[1] ?? null,
      'together',
    )
    report('everything at once')
    const counts: Record<string, number> = {}
    const count = (what: string) => {
      counts[what] = (counts[what] ?? 0) + 1
    }
    const end = performance.now() + seconds * 1_000
    const isRunning = () => performance.now() < end
    let [failures, peak] = [0, 0]
    const headers = { authorization: `Bearer ${bucket.token}` }

    /** Null if the service refused the request, and otherwise its text. */
    async function request(what: string, path: string, init: RequestInit = {}): Promise<string | null> {
      try {
        const response = await fetch(new URL(path, service.url), { ...init, headers })
        const text = await response.text()
        if (response.ok) {
          count(what)
          return text
        }
        count(`${what}, status ${response.status}`)
        if (!busy.has(response.status)) failures += 1
        else await sleep(100)
      } catch (error) {
        count(`${what}, ${error instanceof Error ? error.message : 'no response'}`)
        failures += 1
        await sleep(100)
      }
      return null
    }

    /** Ids of pictures whose thumbnails nobody has requested yet. */
    const fresh: string[] = []
    async function upload(number: number): Promise<void> {
      const own: string[] = []
      while (isRunning()) {
        const body = pictures[(number + own.length) % pictures.length] ?? ''
        const text = await request('uploads', '/api/media', { method: 'POST', body })
        if (text === null) continue
        const item: { readonly id: string } = JSON.parse(text)
        own.push(item.id)
        fresh.push(item.id)
        const [oldest] = own
        if (own.length <= kept || oldest === undefined) continue
        own.shift()
        const at = fresh.indexOf(oldest)
        if (at >= 0) fresh.splice(at, 1)
        await request('deletions', `/api/media/${oldest}`, { method: 'DELETE' })
      }
    }
    async function view(): Promise<void> {
      while (isRunning()) {
        const id = fresh.shift()
        if (id === undefined) await sleep(20)
        else
          for (const variant of ['thumb', 'medium']) {
            const response = await fetch(`${service.url}/media/${id}?variant=${variant}`).catch(() => null)
            const text = await response?.text().catch(() => '')
            const status = response?.status ?? 0
            // Its uploader may have deleted it.
            const isDeleted = status === 404 && text?.includes('media-unknown') === true
            count(status === 200 ? 'variants' : `variants, ${isDeleted ? 'deleted' : `status ${status}`}`)
            if (status !== 200 && !isDeleted && !busy.has(status)) failures += 1
          }
      }
    }
    async function list(number: number): Promise<void> {
      for (let page = 1; isRunning(); page += 1) {
        const path =
          number % 2 === 0 ? `/api/media?page=${1 + (page % 100)}` : '/api/items?limit=500&order=newest'
        await request('lists', path)
      }
    }
    async function backUp(): Promise<void> {
      const [file = '', ...args] = [...command, 'backup', join(scratch, 'backup')]
      while (isRunning()) {
        try {
          await promisify(execFile)(file, args, { env: { PATH: process.env['PATH'], ...settings } })
          count('backups')
        } catch (error) {
          count(`backups, ${error instanceof Error ? error.message.trim().slice(-200) : ''}`)
          failures += 1
        }
        await sleep(1_000)
      }
    }
    async function watch(): Promise<void> {
      while (isRunning()) {
        peak = Math.max(peak, group.unreclaimable())
        await sleep(50)
      }
    }
    const many = (length: number, work: (number: number) => Promise<void>) =>
      Array.from({ length }, (_, number) => work(number))
    await Promise.all([
      ...[...many(uploaders, upload), ...many(listers, list), ...many(viewers, view)],
      ...[backUp(), watch()],
    ])
    const isAlive = (await request('lists', '/api/media')) !== null
    const kills = group.kills() + (isAlive ? 0 : 1)
    await service.stop()
    return { kills, failures, peak, counts }
  } finally {
    await group.remove()
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** The figures and their required values, as Markdown. */
export function reportMemory({ kills, failures, peak, counts }: MemoryResults): string {
  const bars: Bar[] = [
    none('processes killed for lack of memory', kills),
    none('failed requests and backups', failures),
    atMost('peak of the memory, without the cache of files', peak / 2 ** 20, limit / 2 ** 20, 'MiB', ''),
  ]
  return [
    ...barTable(bars),
    '',
    ...Object.entries(counts).map(([what, number]) => `- ${what}: ${number}`),
  ].join('\n')
}

const none = (name: string, found: number): Bar => ({
  name,
  must: '0',
  aim: '',
  found: String(found),
  met: found === 0,
})
