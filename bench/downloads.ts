import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import sharp from 'sharp'
import { type Bucket, fillBuckets } from './buckets.ts'
import { startMediabucket } from './mediabucket.ts'
import { type Row, runInTurn } from './rounds.ts'
import { measure, type Subject, startSubject } from './subject.ts'
import { startNginx } from './yardsticks/nginx.ts'

const local = (path: string) => resolve(import.meta.dirname, path)

/** How many and how long: the short form proves that the bench runs, and measures nothing. */
export interface DownloadsExtent {
  readonly rounds: number
  readonly seconds: number
  /** Files of 20 kB that are requested at random. */
  readonly many: number
  readonly thumbnails: number
  /** Files of 100 kB on a slow disk. */
  readonly slow: number
}

export interface DownloadsResults {
  readonly rows: readonly Row[]
}

/** The sets of hot files: `count` files of `size` bytes each. */
const hotSets = [
  { id: '2 kB', size: 2_000, count: 30 },
  { id: '20 kB', size: 20_000, count: 30 },
  { id: '100 kB', size: 100_000, count: 30 },
  { id: '1 MB', size: 1_000_000, count: 1 },
] as const

/** Bytes of each of the many files. */
const manySize = 20_000
const slowSize = 100_000
/** Milliseconds of each call of the slow disk (loads/slow-disk.ts). */
const slowCall = 20
/** Files of one form. */
const formLength = 100
/** The side of the pictures whose thumbnails are requested. Pixels. */
const pictureSide = 600

export async function benchDownloads(
  extent: DownloadsExtent,
  report: (text: string) => void,
): Promise<DownloadsResults> {
  const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
  const running: Subject[] = []
  const started = async <S extends Subject>(starting: Promise<S>): Promise<S> => {
    const subject = await starting
    running.push(subject)
    return subject
  }
  try {
    const data = join(scratch, 'data')
    const [bucket] = await fillBuckets(data, [{ bucket: 'downloads', items: 0 }])
    const slowData = join(scratch, 'slow')
    const [slowBucket] = await fillBuckets(slowData, [{ bucket: 'slow', items: 30 }])
    if (!bucket || !slowBucket) throw new Error('no buckets')
    const files = join(scratch, 'nginx', 'files')
    mkdirSync(files, { recursive: true })
    const nginx = await started(startNginx(join(scratch, 'nginx')))
    // No thumbnails are rendered while the loads run; those of the thumbnails' case are requested before.
    const ours = await started(startMediabucket(data, { MEDIABUCKET_RENDER_AHEAD: 'off' }))

    /** Stores the same files in both services; returns the load of each: requests for them at random. */
    const store = async (id: string, contents: AsyncIterable<Buffer<ArrayBuffer>>, variant = '') => {
      const stored: string[] = []
      for await (const form of inForms(contents)) stored.push(...(await upload(ours, bucket, form)))
      const paths = stored.map((path) => path + variant)
      const names = paths.map((_, index) => `${id.replaceAll(' ', '-')}-${index}`)
      for (const [index, name] of names.entries()) {
        const response = await fetch(ours.url + (paths[index] ?? ''))
        if (response.status !== 200) throw new Error(`${paths[index]} got ${response.status}`)
        writeFileSync(join(files, name), Buffer.from(await response.arrayBuffer()))
      }
      return {
        ours: randomLoad(join(scratch, `${id} ours`), paths),
        nginx: randomLoad(
          join(scratch, `${id} nginx`),
          names.map((name) => `/${name}`),
        ),
      }
    }

    const cases: { id: string; run: () => ReturnType<typeof measure> }[] = []
    const add = (id: string, subject: Subject, load: { script: readonly string[] }) =>
      cases.push({
        id: `${id} from ${subject.name}`,
        run: () => measure(subject, '/', { ...load, connections: 32, seconds: extent.seconds }),
      })
    for (const { id, size, count } of hotSets) {
      report(`storing ${count} files of ${id}`)
      const loads = await store(id, randomFiles(count, size))
      add(id, nginx, loads.nginx)
      add(id, await started(startConstant(join(files, `${id.replaceAll(' ', '-')}-0`))), loads.ours)
      add(id, ours, loads.ours)
    }
    report(`storing ${extent.many} files of ${manySize} bytes`)
    const many = await store('many', randomFiles(extent.many, manySize))
    add('many', nginx, many.nginx)
    add('many', ours, many.ours)
    report(`storing ${extent.thumbnails} pictures`)
    const thumbnails = await store('thumbnails', pictures(extent.thumbnails), '?variant=thumb')
    add('thumbnails', nginx, thumbnails.nginx)
    add('thumbnails', ours, thumbnails.ours)
    const rows = await runInTurn(cases, extent.rounds, report)
    for (const subject of running.splice(0)) await subject.stop()

    report('a listing beside downloads from a slow disk')
    const slow = await started(
      startMediabucket(slowData, {
        NODE_OPTIONS: `--import ${pathToFileURL(local('loads/slow-disk.ts'))}`,
        MEDIABUCKET_CACHE: '0',
      }),
    )
    const cold: string[] = []
    for await (const form of inForms(randomFiles(extent.slow, slowSize)))
      cold.push(...(await upload(slow, slowBucket, form)))
    // The threads that read files start with the first reads.
    await Promise.all(cold.slice(0, 16).map(async (path) => (await fetch(slow.url + path)).arrayBuffer()))
    const coldLoad = randomLoad(join(scratch, 'cold'), cold)
    const list = () =>
      measure(slow, '/api/media?page=2', {
        connections: 32,
        seconds: extent.seconds,
        headers: [`Authorization: Bearer ${slowBucket.token}`],
      })
    const beside = await runInTurn(
      [
        { id: 'listing, quiet', run: list },
        {
          id: 'listing during cold downloads',
          run: async () => {
            const [listed, downloaded] = await Promise.all([
              list(),
              measure(slow, '/', { ...coldLoad, connections: 16, seconds: extent.seconds }),
            ])
            if (downloaded.p50 < slowCall) throw new Error(`the disk is not slow: ${downloaded.p50} ms`)
            report(`${downloaded.perSecond.toFixed(0)} downloads/s at the same time`)
            return listed
          },
        },
      ],
      extent.rounds,
      report,
    )
    return { rows: [...rows, ...beside] }
  } finally {
    for (const subject of running) await subject.stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** node:http that responds to every path with the bytes of one file. */
const startConstant = (file: string) =>
  startSubject(
    'node:http',
    ['node', local('yardsticks/node-constant.ts'), file],
    {},
    (printed) => /listening on (\S+)/.exec(printed)?.[1] ?? null,
  )

function randomLoad(file: string, paths: readonly string[]) {
  writeFileSync(file, paths.join('\n'))
  return { script: [local('lua/random-paths.lua'), file] }
}

async function* randomFiles(count: number, size: number): AsyncGenerator<Buffer<ArrayBuffer>> {
  for (let done = 0; done < count; done += 1) yield randomBytes(size)
}

/** Pictures of noise, so that their thumbnails have a realistic size. */
async function* pictures(count: number): AsyncGenerator<Buffer<ArrayBuffer>> {
  const create = { width: pictureSide, height: pictureSide, channels: 3, background: 'grey' } as const
  for (let done = 0; done < count; done += 1) {
    const noise = { type: 'gaussian', mean: 128, sigma: 30 } as const
    yield Buffer.from(
      await sharp({ create: { ...create, noise } })
        .jpeg({ quality: 60 })
        .toBuffer(),
    )
  }
}

async function* inForms(contents: AsyncIterable<Buffer<ArrayBuffer>>): AsyncGenerator<FormData> {
  let form = new FormData()
  let length = 0
  for await (const bytes of contents) {
    form.append('file', new File([bytes], 'file'))
    length += 1
    if (length < formLength) continue
    yield form
    form = new FormData()
    length = 0
  }
  if (length > 0) yield form
}

/** Stores the files of a form; returns the paths of their bytes. */
async function upload(subject: Subject, { token }: Bucket, body: FormData): Promise<string[]> {
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(`${subject.url}/api/media`, { method: 'POST', body, headers })
  if (response.status !== 201) throw new Error(`an upload got ${response.status}`)
  return [...(await response.text()).matchAll(/"url":"[^"]*?(\/media\/[^"]+)"/g)].map(([, path = '']) => path)
}
