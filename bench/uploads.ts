import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Bucket, fillBuckets } from './buckets.ts'
import { startMediabucket } from './mediabucket.ts'
import { type Row, runInTurn } from './rounds.ts'
import { small, smallSizes, smallUploads, uploading } from './small-uploads.ts'
import { type Measure, measure, runPinned, type Subject, startSubject } from './subject.ts'
import { startNginx } from './yardsticks/nginx.ts'
import { yardstickThreads } from './yardsticks/threads.ts'

const local = (path: string) => resolve(import.meta.dirname, path)

/** How long and how large: the short form proves that the bench runs, and measures nothing. Sizes are bytes. */
export interface UploadsExtent {
  readonly rounds: number
  readonly seconds: number
  /** Of the listings whose p99 is measured: in short rounds it depends on a few garbage collections. */
  readonly listingSeconds: number
  readonly large: number
  readonly largeDownload: number
  /** Uploads that are open at once. */
  readonly open: number
}

export interface UploadsResults {
  readonly rows: readonly Row[]
  /** Peak resident bytes during the large uploads, minus those of the server after its start. */
  readonly rssGrowth: Readonly<Record<'raw' | 'multipart' | 'tus', number>>
  readonly open: { readonly opened: number; readonly stored: number; readonly peakRss: number }
}

/** Bytes. */
const smallDownload = 20_000
/** Size of each upload that is open at once. Bytes. */
const held = 100_000

export async function benchUploads(
  extent: UploadsExtent,
  report: (text: string) => void,
): Promise<UploadsResults> {
  const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
  const running = new Set<Subject>()
  const started = async <S extends Subject>(starting: Promise<S>): Promise<S> => {
    const subject = await starting
    running.add(subject)
    return subject
  }
  const stop = async (subject: Subject) => {
    await subject.stop()
    running.delete(subject)
  }
  try {
    const data = join(scratch, 'data')
    const [bucket, listed] = await fillBuckets(data, [
      { bucket: 'uploads', items: 1 },
      { bucket: 'listed', items: 30 },
    ])
    if (!bucket || !listed) throw new Error('no buckets')
    const afterSync = (run: () => Promise<Measure>) => () => {
      // Excludes the pending disk writes of the previous case.
      execFileSync('sync')
      return run()
    }

    report('durable small uploads')
    const durable: Row[] = []
    // Each size in an empty directory, and in rounds of its own: the sizes are not compared, and the names of one are indexed during the other.
    for (const size of smallSizes) {
      const directory = join(scratch, `data-${size.bytes}`)
      const [filled] = await fillBuckets(directory, [{ bucket: 'uploads', items: 1 }])
      if (!filled) throw new Error('no bucket')
      const storing = await started(startMediabucket(directory))
      const cases = smallUploads(storing, size, { token: filled.token, scratch, seconds: extent.seconds })
      const synced = cases.map(({ id, run }) => ({ id, run: afterSync(run) }))
      durable.push(...(await runInTurn(synced, extent.rounds, report)))
      await stop(storing)
    }

    report('large uploads')
    let ours = await started(startMediabucket(data))
    const receiver = await started(
      startSubject(
        'receiver',
        ['node', local('yardsticks/bare-receiver.ts'), scratch],
        yardstickThreads,
        listening,
      ),
    )
    const fresh = ours.rss()
    const rssGrowth = { raw: 0, multipart: 0, tus: 0 }
    const large = await runInTurn(
      [
        { id: 'receiver', run: afterSync(() => sendFile('bare', receiver, bucket, extent.large)) },
        ...(['raw', 'multipart', 'tus'] as const).map((form) => ({
          id: form,
          run: afterSync(async () => {
            ours.resetPeak()
            const measured = await sendFile(form, ours, bucket, extent.large)
            rssGrowth[form] = Math.max(rssGrowth[form], ours.peakRss() - fresh)
            return measured
          }),
        })),
      ],
      extent.rounds,
      report,
    )
    await stop(receiver)
    await stop(ours)

    report('downloads')
    // Reads the bytes for each request, as the file stream does; the suite of downloads measures the cache.
    ours = await started(startMediabucket(data, { MEDIABUCKET_CACHE: '0' }))
    const files = join(scratch, 'nginx', 'files')
    mkdirSync(files, { recursive: true })
    const downloads: { id: string; size: number; connections: number }[] = [
      { id: '20 kB', size: smallDownload, connections: 32 },
      { id: '100 MB', size: extent.largeDownload, connections: 2 },
    ]
    const nginx = await started(startNginx(join(scratch, 'nginx')))
    const stream = await started(
      startSubject(
        'file stream',
        ['node', local('yardsticks/node-files.ts'), files],
        yardstickThreads,
        listening,
      ),
    )
    const cases = []
    for (const { id, size, connections } of downloads) {
      const bytes = Buffer.alloc(size, '0123456789')
      writeFileSync(join(files, String(size)), bytes)
      const own = await store(ours, bucket, bytes)
      for (const [subject, path] of [
        [nginx, `/${size}`],
        [stream, `/${size}`],
        [ours, own],
      ] as const)
        cases.push({
          id: `${id} from ${subject.name}`,
          run: afterSync(() => measure(subject, path, { connections, seconds: extent.seconds })),
        })
    }
    const downloaded = await runInTurn(cases, extent.rounds, report)
    await stop(nginx)
    await stop(stream)
    await stop(ours)

    report('a listing during uploads')
    ours = await started(startMediabucket(data))
    const list = () =>
      measure(ours, '/api/media?page=2', {
        connections: 32,
        seconds: extent.listingSeconds,
        headers: [`Authorization: Bearer ${listed.token}`],
      })
    const listings = await runInTurn(
      [
        { id: 'listing, quiet', run: afterSync(list) },
        {
          id: 'listing during uploads',
          run: afterSync(async () => {
            const [measured] = await Promise.all([
              list(),
              measure(ours, '/', { ...uploading(8, small, bucket.token), seconds: extent.listingSeconds }),
            ])
            return measured
          }),
        },
      ],
      extent.rounds,
      report,
    )
    await stop(ours)

    report(`${extent.open} uploads at once`)
    ours = await started(startMediabucket(data))
    const command = ['node', local('loads/hold-uploads.ts'), ours.url, bucket.token]
    const printed = await runPinned('load', [...command, String(extent.open), String(held)])
    const { opened, stored }: { opened: number; stored: number } = JSON.parse(printed)
    const open = { opened, stored, peakRss: ours.peakRss() }
    report(`${stored} of ${opened}, ${(open.peakRss / 1e6).toFixed(0)} MB`)

    return { rows: [...durable, ...large, ...downloaded, ...listings], rssGrowth, open }
  } finally {
    for (const subject of running) await subject.stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}

const listening = (printed: string) => /listening on (\S+)/.exec(printed)?.[1] ?? null

/** Sends one complete file and deletes its item. */
async function sendFile(form: string, subject: Subject, { token }: Bucket, size: number): Promise<Measure> {
  const before = subject.cpu()
  const command = ['node', local('loads/send-file.ts'), form, subject.url, String(size), token]
  const { milliseconds, location }: { milliseconds: number; location: string | null } = JSON.parse(
    await runPinned('load', command),
  )
  const cpuPerRequest = subject.cpu() - before
  if (location !== null) {
    const response = await fetch(location, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${token}` },
    })
    if (response.status !== 204) throw new Error(`a removal got ${response.status}`)
  }
  const perSecond = 1000 / milliseconds
  return { perSecond, bytesPerSecond: perSecond * size, cpuPerRequest, p50: milliseconds, p99: milliseconds }
}

/** The path prefix of the bytes. */
async function store(subject: Subject, { token }: Bucket, bytes: Buffer): Promise<string> {
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(`${subject.url}/api/media`, { method: 'POST', body: bytes, headers })
  if (response.status !== 201) throw new Error(`an upload got ${response.status}`)
  await response.arrayBuffer()
  return new URL(response.headers.get('location') ?? '').pathname.replace('/api', '')
}
