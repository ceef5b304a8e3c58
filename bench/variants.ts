import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { builtInSizes } from '../packages/server/src/core/variant-sizes.ts'
import { fillBuckets } from './buckets.ts'
import { startMediabucket } from './mediabucket.ts'
import { photograph } from './photograph.ts'
import { type Row, runInTurn } from './rounds.ts'
import { type Measure, measure, runPinned, type Subject } from './subject.ts'

const local = (path: string) => resolve(import.meta.dirname, path)

/** How many and how large: the short form proves that the bench runs, and measures nothing. */
export interface VariantsExtent {
  readonly rounds: number
  /** Of each listing. */
  readonly seconds: number
  /** Pictures whose thumbnails are requested alone, and during a listing. */
  readonly folder: number
  readonly beside: number
  /** Uploads whose thumbnails are requested at once, one after the other. */
  readonly uploads: number
  /** Pixels; the height is three quarters of it. */
  readonly width: number
}

export interface VariantsResults {
  readonly rows: readonly Row[]
  readonly folder: number
}

/** The default number of concurrent renderings of the service. */
const atOnce = 2
/** The number of connections that a browser opens to one host, plus one. */
const connections = 8
/** Pictures that differ; the other ones of the folder are copies, each of which is an item of its own. */
const maxDistinct = 100

/** A service that was started on an empty directory, and its new items. */
interface Fresh {
  readonly server: Subject
  readonly token: string
  /** Of a bucket of small items. */
  readonly listedToken: string
  /** URLs of thumbnails that nobody has requested. */
  readonly thumbs: readonly string[]
  /** Of further pictures, which are rendered before the clock starts. */
  readonly warmUps: readonly string[]
}

export async function benchVariants(
  extent: VariantsExtent,
  report: (text: string) => void,
): Promise<VariantsResults> {
  const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
  try {
    const [pictures, urls] = [join(scratch, 'pictures'), join(scratch, 'urls')]
    report('making pictures')
    const bytes = await writePictures(pictures, extent)

    /** Nothing is stored or cached from an earlier call: each has a new directory, a new process and new items. */
    async function withFresh<T>(
      count: number,
      settings: Readonly<Record<string, string>>,
      run: (fresh: Fresh) => Promise<T>,
    ): Promise<T> {
      const data = join(scratch, 'data')
      const [bucket, listed] = await fillBuckets(data, [
        { bucket: 'pictures', items: 0 },
        { bucket: 'listed', items: 30 },
      ])
      if (!bucket || !listed) throw new Error('no buckets')
      const server = await startMediabucket(data, settings)
      try {
        const stored: string[] = []
        const length = count === 0 ? 0 : count + atOnce
        for (let number = 0; number < length; number += 1) {
          const picture = readFileSync(join(pictures, `${number % count}.jpg`))
          stored.push(`${await store(server, bucket.token, picture)}?variant=thumb`)
        }
        // Excludes the pending disk writes of the uploads and of the previous case.
        execFileSync('sync')
        const [thumbs, warmUps] = [stored.slice(0, count), stored.slice(count)]
        return await run({ server, token: bucket.token, listedToken: listed.token, thumbs, warmUps })
      } finally {
        await server.stop()
        rmSync(data, { recursive: true, force: true })
      }
    }
    // The renders are those of requests.
    const whenRequested = { MEDIABUCKET_RENDER_AHEAD: 'off' }

    /** Requests the thumbnails of all pictures; `beside` runs at the same time. Rejects unless each of them was rendered. */
    async function fetchThumbs<T>(fresh: Fresh, beside: () => Promise<T>) {
      const { server, thumbs, warmUps } = fresh
      await startRendering(fresh)
      writeFileSync(urls, JSON.stringify(thumbs))
      const before = server.cpu()
      const command = ['node', local('loads/fetch-all.ts'), urls, String(connections)]
      const [printed, result] = await Promise.all([runPinned('load', command), beside()])
      const cpu = server.cpu() - before
      await requireRenders(server, thumbs.length + warmUps.length)
      const timed: Timed = JSON.parse(printed)
      return { fetched: measureOf(timed, cpu, (bytes / extent.folder) * thumbs.length), result }
    }

    report('thumbs of a folder')
    const side = String(builtInSizes[0]?.width)
    const loop = ['node', local('yardsticks/sharp-loop.ts'), pictures, String(atOnce), side]
    const made = await runInTurn(
      [
        {
          id: 'bare loop',
          async run() {
            execFileSync('sync')
            const timed: Timed & { cpuSeconds: number } = JSON.parse(await runPinned('subject', loop))
            return measureOf(timed, timed.cpuSeconds, bytes)
          },
        },
        {
          id: 'thumbs',
          run: () =>
            withFresh(
              extent.folder,
              whenRequested,
              async (fresh) => (await fetchThumbs(fresh, async () => null)).fetched,
            ),
        },
      ],
      extent.rounds,
      report,
    )

    report('the first thumb after an upload')
    const first = await withFresh(0, {}, async ({ server, token }): Promise<Measure> => {
      const command = ['node', local('loads/first-thumbs.ts'), pictures, server.url, token]
      const before = server.cpu()
      const timed: Timed = JSON.parse(await runPinned('load', [...command, String(extent.uploads)]))
      const cpu = server.cpu() - before
      // One more upload starts the process that renders.
      await requireRenders(server, extent.uploads + 1)
      return measureOf(timed, cpu, (bytes / extent.folder) * extent.uploads)
    })

    report('a listing while thumbs are rendered')
    const list = ({ server, listedToken }: Fresh) =>
      measure(server, '/api/media?page=2', {
        connections: 32,
        seconds: extent.seconds,
        headers: [`Authorization: Bearer ${listedToken}`],
      })
    const rows = await runInTurn(
      [
        {
          id: 'listing, quiet',
          run: () =>
            withFresh(extent.beside, whenRequested, async (fresh) => {
              await startRendering(fresh)
              return list(fresh)
            }),
        },
        {
          id: 'listing while thumbs are rendered',
          run: () =>
            withFresh(extent.beside, whenRequested, async (fresh) => {
              const { fetched, result } = await fetchThumbs(fresh, () => list(fresh))
              report(
                `at the same time ${fetched.perSecond.toFixed(1)} thumbs/s, those after the listing's end included`,
              )
              return result
            }),
        },
      ],
      extent.rounds,
      report,
    )
    return {
      rows: [...made, { id: 'first thumb after an upload', measure: first }, ...rows],
      folder: extent.folder,
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** Writes the pictures of the folder, and returns their size in bytes. */
async function writePictures(directory: string, { folder, width }: VariantsExtent): Promise<number> {
  mkdirSync(directory)
  const path = (number: number) => join(directory, `${number}.jpg`)
  const sizes: number[] = []
  for (let number = 0; number < folder; number += 1) {
    const original = number % maxDistinct
    if (number === original) {
      const picture = await photograph(width)
      writeFileSync(path(number), picture)
      sizes.push(picture.length)
    } else {
      copyFileSync(path(original), path(number))
      sizes.push(sizes[original] ?? 0)
    }
  }
  return sizes.reduce((sum, size) => sum + size, 0)
}

/** Starts the processes that render. No other picture is rendered. */
async function startRendering({ server, warmUps }: Fresh): Promise<void> {
  await Promise.all(warmUps.map(read))
  await requireRenders(server, warmUps.length)
}

async function read(url: string): Promise<void> {
  const response = await fetch(url)
  await response.arrayBuffer()
  if (response.status !== 200) throw new Error(`${url} got ${response.status}`)
}

/** Milliseconds. The metrics of the service are up to a second old. */
const metricsTime = 5_000

/** Rejects unless the service has rendered this number of variants since its start. */
async function requireRenders({ url }: Subject, count: number): Promise<void> {
  const deadline = performance.now() + metricsTime
  for (;;) {
    const metrics = await (await fetch(`${url}/metrics`)).text()
    const counts = metrics.matchAll(/^mediabucket_variant_seconds_count\{[^}]*outcome="made"[^}]*\} (\d+)/gm)
    const made = [...counts].reduce((sum, [, found]) => sum + Number(found), 0)
    if (made === count) return
    if (made > count || performance.now() > deadline)
      throw new Error(`the service has rendered ${made} variants instead of ${count}`)
    await sleep(100)
  }
}

/** Milliseconds of each one and in total. */
interface Timed {
  readonly milliseconds: number
  readonly taken: readonly number[]
}

function measureOf({ milliseconds, taken }: Timed, cpuSeconds: number, bytes: number): Measure {
  const quantile = (share: number) => taken[Math.floor(taken.length * share)] ?? Number.NaN
  return {
    perSecond: (taken.length / milliseconds) * 1000,
    bytesPerSecond: (bytes / milliseconds) * 1000,
    cpuPerRequest: cpuSeconds / taken.length,
    p50: quantile(0.5),
    p99: quantile(0.99),
  }
}

/** The URL of the bytes. */
async function store(subject: Subject, token: string, bytes: Buffer<ArrayBuffer>): Promise<string> {
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(`${subject.url}/api/media`, { method: 'POST', body: bytes, headers })
  await response.arrayBuffer()
  const location = response.headers.get('location')
  if (response.status !== 201 || location === null) throw new Error(`an upload got ${response.status}`)
  return location.replace('/api/media/', '/media/')
}
