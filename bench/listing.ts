import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { newToken } from '../packages/server/src/core/token-rules.ts'
import { type Bucket, fillBuckets, writeTokens } from './buckets.ts'
import { startMediabucket } from './mediabucket.ts'
import { type Case, type Extent, measureInRounds, type Row } from './rounds.ts'
import { measure, median, type Subject, startSubject } from './subject.ts'
import { startNginx } from './yardsticks/nginx.ts'

const noLimits = {
  MEDIABUCKET_TOKEN_RATE: 'off',
  MEDIABUCKET_ADDRESS_RATE: 'off',
  MEDIABUCKET_AUTH_FAILURE_RATE: 'off',
}

const lua = (name: string) => resolve(import.meta.dirname, 'lua', name)

export interface ListingResults {
  readonly rows: readonly Row[]
  /** While small and large pages are listed at the same time: growth of resident memory in bytes, delay in milliseconds. */
  readonly mixed: { readonly rssGrowth: number; readonly loopDelayP99: number }
  /** Milliseconds for one upload of a few bytes, one at a time: into an empty bucket, and into the large one. */
  readonly uploads: { readonly empty: number; readonly large: number }
}

/** Starts all measured servers on one core, then measures the cases one after another in each round. */
export async function benchListing(extent: Extent, report: (text: string) => void): Promise<ListingResults> {
  const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
  const stops: (() => Promise<void>)[] = []
  /** Waits for the start of a server, and stops the server at the end. */
  const stopAtEnd = async <S extends Subject>(starting: Promise<S>): Promise<S> => {
    const subject = await starting
    stops.push(subject.stop)
    return subject
  }
  try {
    report('filling the buckets')
    const data = join(scratch, 'data')
    const many = Array.from({ length: extent.buckets }, (_, index) => ({
      bucket: `many-${index}`,
      items: 30,
    }))
    const [small, thousand, large, empty, ...others] = await fillBuckets(data, [
      { bucket: 'small', items: 30 },
      { bucket: 'thousand', items: 1000 },
      { bucket: 'large', items: extent.large, deleteEvery: 100 },
      { bucket: 'empty', items: 1 },
      ...many,
    ])
    if (!small || !thousand || !large || !empty) throw new Error('no buckets')
    const tokensFile = join(scratch, 'tokens')
    writeTokens(tokensFile, others)

    const serve = (name: string, settings: Record<string, string>) =>
      stopAtEnd(startMediabucket(data, settings, name))
    // A data directory allows one server at a time: this one stops before the server without caches starts.
    const ours = await serve('mediabucket', {})
    // The cost of the rate limits is measured between two servers with the same small bucket. The server with the large bucket
    // cannot be one of them: its larger heap costs more than the limits.
    const serveSmall = async (name: string, settings: Record<string, string>) => {
      const directory = join(scratch, name)
      const [bucket] = await fillBuckets(directory, [{ bucket: 'small', items: 30 }])
      if (!bucket) throw new Error('no bucket')
      return { bucket, subject: await stopAtEnd(startMediabucket(directory, settings, name)) }
    }
    const limited = await serveSmall('with limits', {})
    const unlimited = await serveSmall('without limits', noLimits)
    const files = join(scratch, 'nginx', 'files')
    mkdirSync(files, { recursive: true })
    const save = async (name: string, page: number, bucket: Bucket) => {
      const response = await get(ours, `/api/media?page=${page}`, bucket)
      writeFileSync(join(files, name), Buffer.from(await response.arrayBuffer()))
      return response.headers.get('etag') ?? ''
    }
    const tag = await save('page.json', 2, small)
    await save('large.json', large.pages >> 1, large)
    const nginx = await stopAtEnd(startNginx(join(scratch, 'nginx')))
    const constant = resolve(import.meta.dirname, 'yardsticks/node-constant.ts')
    const bare = await stopAtEnd(
      startSubject(
        'node:http',
        ['node', constant, join(files, 'page.json')],
        {},
        (printed) => /listening on (\S+)/.exec(printed)?.[1] ?? null,
      ),
    )

    const c32 = { connections: 32 }
    const page2 = '/api/media?page=2'
    const random = ({ token }: Bucket, first: number, last: number, ...more: string[]) => ({
      script: [lua('random-pages.lua'), token, String(first), String(last), ...more],
    })
    const unknown = { token: newToken(), pages: 1 }
    const cases: Case[] = [
      { id: 'nginx', subject: nginx, path: '/page.json', load: c32 },
      { id: 'node', subject: bare, path: '/', load: c32 },
      { id: 'page', subject: ours, path: page2, load: { ...c32, headers: [bearer(small)] } },
      ...Object.entries({ 'page-limited': limited, 'page-unlimited': unlimited }).map(
        ([id, { subject, bucket }]) => ({
          id,
          subject,
          path: page2,
          load: { ...c32, headers: [bearer(bucket)] },
        }),
      ),
      {
        id: 'tokens',
        subject: ours,
        path: '/',
        load: { ...c32, script: [lua('random-tokens.lua'), tokensFile] },
      },
      {
        id: '304',
        subject: ours,
        path: page2,
        load: { ...c32, headers: [bearer(small), `If-None-Match: ${tag}`] },
      },
      { id: '401', subject: ours, path: page2, load: { ...c32, headers: [bearer(unknown)] }, refusals: true },
      { id: 'nginx-large', subject: nginx, path: '/large.json', load: { connections: 8 } },
      { id: 'large', subject: ours, path: '/', load: { connections: 8, ...random(large, 1, large.pages) } },
      {
        id: 'large-gzip',
        subject: ours,
        path: '/',
        load: { connections: 8, ...random(large, 1, large.pages, 'gzip') },
      },
    ]
    const rows = await measureInRounds(cases, extent, report)

    report('large and small pages at the same time')
    const rss = ours.rss()
    await get(ours, '/metrics', small)
    await Promise.all([
      measure(ours, page2, { ...c32, seconds: extent.seconds, headers: [bearer(small)] }),
      measure(ours, '/', { connections: 8, seconds: extent.seconds, ...random(large, 1, large.pages) }),
    ])
    const metrics = await (await get(ours, '/metrics', small)).text()
    const loopDelayP99 = Number(/^nodejs_eventloop_lag_p99_seconds (\S+)/m.exec(metrics)?.[1]) * 1000
    const mixed = { rssGrowth: ours.rss() - rss, loopDelayP99 }

    report('single uploads')
    const uploads = await timeUploads(ours, empty, large, extent.rounds * 40)

    // Without caches and with windowed links, so that the cases differ only in how the rows of the page are found.
    await ours.stop()
    const cold = await serve('without cache', { MEDIABUCKET_CACHE: '0', MEDIABUCKET_LINKS: 'window' })
    const one = { connections: 1 }
    const deep = Math.floor(large.pages * 0.9)
    const coldCases: Case[] = [
      { id: 'cold-1000', subject: cold, path: '/', load: { ...one, ...random(thousand, 1, thousand.pages) } },
      { id: 'cold-large', subject: cold, path: '/', load: { ...one, ...random(large, 1, large.pages) } },
      { id: 'cold-first', subject: cold, path: '/', load: { ...one, ...random(large, 1, 100) } },
      { id: 'cold-deep', subject: cold, path: '/', load: { ...one, ...random(large, deep, deep + 99) } },
    ]
    const coldRows = await measureInRounds(coldCases, extent, report)

    await cold.stop()
    const windowed = await serve('windowed links', { MEDIABUCKET_LINKS: 'window' })
    const windowedCases: Case[] = [
      { id: 'windowed-hot', subject: windowed, path: page2, load: { ...c32, headers: [bearer(large)] } },
      {
        id: 'windowed-random',
        subject: windowed,
        path: '/',
        load: { ...c32, ...random(large, 1, large.pages) },
      },
    ]
    const windowedRows = await measureInRounds(windowedCases, extent, report)
    return { rows: [...rows, ...coldRows, ...windowedRows], mixed, uploads }
  } finally {
    for (const stop of stops.reverse()) await stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}

const bearer = ({ token }: Bucket) => `Authorization: Bearer ${token}`

const get = (subject: Subject, path: string, { token }: Bucket) =>
  fetch(subject.url + path, { headers: { authorization: `Bearer ${token}`, 'accept-encoding': 'identity' } })

/** Median milliseconds of an upload. The uploads are sent one at a time, to both buckets in turn. */
async function timeUploads(subject: Subject, empty: Bucket, large: Bucket, times: number) {
  const taken = { empty: [] as number[], large: [] as number[] }
  const upload = async ({ token }: Bucket) => {
    const startedAt = performance.now()
    const headers = { authorization: `Bearer ${token}` }
    const response = await fetch(`${subject.url}/api/media`, { method: 'POST', body: 'bench', headers })
    await response.arrayBuffer()
    if (response.status !== 201) throw new Error(`an upload failed with status ${response.status}`)
    return performance.now() - startedAt
  }
  for (let i = 0; i < times; i += 1) {
    taken.empty.push(await upload(empty))
    taken.large.push(await upload(large))
  }
  return { empty: median(taken.empty), large: median(taken.large) }
}
