import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import sharp from 'sharp'
import { builtInSizes } from '../packages/server/src/core/variants.ts'
import { fillBuckets } from './buckets.ts'
import { startMediabucket } from './mediabucket.ts'
import { type Row, runInTurn } from './rounds.ts'
import { type Measure, measure, runPinned, type Subject } from './subject.ts'

const local = (path: string) => resolve(import.meta.dirname, path)

/** How many and how large: the short form proves that the bench runs, and measures nothing. */
export interface VariantsExtent {
  readonly rounds: number
  /** Of each listing. */
  readonly seconds: number
  readonly pictures: number
  /** Pixels; the height is three quarters of it. */
  readonly width: number
}

export interface VariantsResults {
  readonly rows: readonly Row[]
}

/** The default number of concurrent renderings of the service. */
const atOnce = 2
/** The number of connections that a browser opens to one host, plus one. */
const connections = 8

export async function benchVariants(
  extent: VariantsExtent,
  report: (text: string) => void,
): Promise<VariantsResults> {
  const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
  let server: Subject | null = null
  try {
    const [data, pictures, urls] = [join(scratch, 'data'), join(scratch, 'pictures'), join(scratch, 'urls')]
    const [bucket, listed] = await fillBuckets(data, [
      { bucket: 'pictures', items: 0 },
      { bucket: 'listed', items: 30 },
    ])
    if (!bucket || !listed) throw new Error('no buckets')
    mkdirSync(pictures)
    // The renders are those of requests.
    server = await startMediabucket(data, { MEDIABUCKET_RENDER_AHEAD: 'off' })
    const ours = server
    report('making pictures')
    const thumbs: string[] = []
    let bytes = 0
    for (let count = 0; count < extent.pictures; count += 1) {
      const picture = await photograph(extent.width)
      bytes += picture.length
      writeFileSync(join(pictures, `${count}.jpg`), picture)
      thumbs.push(`${await store(ours, bucket.token, picture)}?variant=thumb`)
    }
    writeFileSync(urls, JSON.stringify(thumbs))

    /** Thumbnails of all pictures, none of which is stored yet. */
    const fetchThumbs = async (): Promise<Measure> => {
      for (const name of ['variants', 'variants.db', 'variants.db-wal', 'variants.db-shm'])
        rmSync(join(data, name), { recursive: true, force: true })
      const before = ours.cpu()
      const printed = await runPinned('load', [
        'node',
        local('loads/fetch-all.ts'),
        urls,
        String(connections),
      ])
      const timed: Timed = JSON.parse(printed)
      return measureOf(timed, ours.cpu() - before, bytes)
    }
    const afterSync = (run: () => Promise<Measure>) => () => {
      execFileSync('sync')
      return run()
    }

    report('thumbs')
    const loop = [
      'node',
      local('yardsticks/sharp-loop.ts'),
      pictures,
      String(atOnce),
      String(builtInSizes[0]?.width),
    ]
    const made = await runInTurn(
      [
        {
          id: 'bare loop',
          run: afterSync(async () => {
            const timed: Timed & { cpuSeconds: number } = JSON.parse(await runPinned('subject', loop))
            return measureOf(timed, timed.cpuSeconds, bytes)
          }),
        },
        { id: 'thumbs', run: afterSync(fetchThumbs) },
      ],
      extent.rounds,
      report,
    )

    report('a listing while thumbs are rendered')
    const list = () =>
      measure(ours, '/api/media?page=2', {
        connections: 32,
        seconds: extent.seconds,
        headers: [`Authorization: Bearer ${listed.token}`],
      })
    const rows = await runInTurn(
      [
        { id: 'listing, quiet', run: afterSync(list) },
        {
          id: 'listing while thumbs are rendered',
          run: afterSync(async () => {
            const [measured, fetched] = await Promise.all([list(), fetchThumbs()])
            report(
              `at the same time ${fetched.perSecond.toFixed(1)} thumbs/s, those after the listing's end included`,
            )
            return measured
          }),
        },
      ],
      extent.rounds,
      report,
    )
    return { rows: [...made, ...rows] }
  } finally {
    await server?.stop()
    rmSync(scratch, { recursive: true, force: true })
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

/** A JPEG of the size of a photograph: noise, enlarged four times, over a random colour. */
async function photograph(width: number): Promise<Buffer<ArrayBuffer>> {
  const noise = await sharp({
    create: {
      width: width / 4,
      height: (width * 3) / 16,
      channels: 3,
      background: 'grey',
      noise: { type: 'gaussian', mean: 128, sigma: 40 },
    },
  })
    .raw()
    .toBuffer({ resolveWithObject: true })
  const { width: w, height: h, channels } = noise.info
  const jpeg = await sharp(noise.data, { raw: { width: w, height: h, channels } })
    .resize({ width, kernel: 'cubic' })
    .jpeg({ quality: 90 })
    .toBuffer()
  return Buffer.from(jpeg)
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
