import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Load, type Measure, measure, median, type Subject, startSubject } from './subject.ts'
import { startNginx } from './yardsticks/nginx.ts'

const bin = resolve(import.meta.dirname, '../packages/server/bin/mediabucket.js')
const lua = (name: string) => resolve(import.meta.dirname, 'lua', name)

/** How long and how large: the short form proves that the bench runs, and measures nothing. */
export interface Extent {
  readonly rounds: number
  readonly seconds: number
  readonly large: number
  readonly buckets: number
}

/** One thing measured: a subject, a path, a load. */
interface Case {
  readonly name: string
  readonly subject: Subject
  readonly path: string
  readonly load: Omit<Load, 'seconds'>
  readonly refusals?: boolean
}

export interface Row {
  readonly name: string
  readonly measure: Measure
}

/** Starts every subject on one core, then takes the cases in turn, round after round; the row of a case is its median. */
export async function benchListing(extent: Extent, tell: (text: string) => void): Promise<Row[]> {
  const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
  const stops: (() => Promise<void>)[] = []
  const started = async <S extends Subject>(starting: Promise<S>): Promise<S> => {
    const subject = await starting
    stops.push(subject.stop)
    return subject
  }
  try {
    tell('filling the buckets')
    const data = join(scratch, 'data')
    const seeded = (bucket: string, items: number, ...more: string[]) => seed(data, bucket, items, ...more)
    const small = seeded('small', 30)
    const thousand = seeded('thousand', 1000)
    const large = seeded('large', extent.large, '--delete-every', '100')
    const tokens = Array.from(
      { length: extent.buckets },
      (_, index) => seeded(`one-of-many-${index}`, 30).token,
    )
    const tokensFile = join(scratch, 'tokens')
    writeFileSync(tokensFile, tokens.join('\n'))

    const serve = (name: string, settings: Record<string, string>) =>
      started(
        startSubject(
          name,
          ['node', bin, 'serve'],
          { MEDIABUCKET_DATA: data, MEDIABUCKET_PORT: '0', ...settings },
          (printed) => /ready at (\S+)/.exec(printed)?.[1] ?? null,
        ),
      )
    const files = join(scratch, 'nginx', 'files')
    mkdirSync(files, { recursive: true })
    const cases: Case[] = []
    const bearer = (token: string) => [`Authorization: Bearer ${token}`]
    const c32 = { connections: 32 }

    // The data directory takes one server at a time; the one with its caches goes first.
    const ours = await serve('mediabucket', {})
    const page = await (await get(ours, '/api/media?page=2', small.token)).arrayBuffer()
    const whole = await get(ours, `/api/media?page=${pages(large.total) >> 1}`, large.token)
    const tag = (await get(ours, '/api/media?page=2', small.token)).headers.get('etag') ?? ''
    writeFileSync(join(files, 'page.json'), Buffer.from(page))
    writeFileSync(join(files, 'large.json'), Buffer.from(await whole.arrayBuffer()))
    const nginx = await started(startNginx(join(scratch, 'nginx')))
    const bare = await started(
      startSubject(
        'node:http',
        ['node', resolve(import.meta.dirname, 'yardsticks/node-constant.ts'), join(files, 'page.json')],
        {},
        (printed) => /listening on (\S+)/.exec(printed)?.[1] ?? null,
      ),
    )
    const randomLarge = ['1', String(pages(large.total))]
    cases.push(
      { name: 'nginx, static file', subject: nginx, path: '/page.json', load: c32 },
      { name: 'node:http, constant', subject: bare, path: '/', load: c32 },
      {
        name: 'page 2 of 30 items',
        subject: ours,
        path: '/api/media?page=2',
        load: { ...c32, headers: bearer(small.token) },
      },
      {
        name: `page 2, ${extent.buckets} tokens of as many buckets`,
        subject: ours,
        path: '/',
        load: { ...c32, script: [lua('random-tokens.lua'), tokensFile] },
      },
      {
        name: 'If-None-Match, 304',
        subject: ours,
        path: '/api/media?page=2',
        load: { ...c32, headers: [...bearer(small.token), `If-None-Match: ${tag}`] },
      },
      {
        name: 'well-formed unknown token, 401',
        subject: ours,
        path: '/api/media',
        load: { ...c32, headers: bearer(unknownToken(data)) },
        refusals: true,
      },
      { name: 'nginx, static file of the large page', subject: nginx, path: '/large.json', load: c32 },
      {
        name: 'random pages of the large bucket',
        subject: ours,
        path: '/',
        load: { ...c32, script: [lua('random-pages.lua'), large.token, ...randomLarge] },
      },
      {
        name: 'random pages of the large bucket, gzip',
        subject: ours,
        path: '/',
        load: { ...c32, script: [lua('random-pages.lua'), large.token, ...randomLarge, 'gzip'] },
      },
    )
    const rows = await rounds(cases, extent, tell)

    // Without caches and with windowed links, so that the way to the rows is all that differs.
    await ours.stop()
    const cold = await serve('mediabucket without cache', {
      MEDIABUCKET_PAGE_CACHE: '0',
      MEDIABUCKET_LINKS: 'window',
    })
    const random = (token: string, first: number, last: number) => ({
      connections: 1,
      script: [lua('random-pages.lua'), token, String(first), String(last)],
    })
    const last = pages(large.total)
    const deep = Math.floor(last * 0.9)
    const coldCases = [
      {
        name: 'no cache, window: 1,000 items',
        subject: cold,
        path: '/',
        load: random(thousand.token, 1, pages(thousand.total)),
      },
      {
        name: 'no cache, window: large bucket',
        subject: cold,
        path: '/',
        load: random(large.token, 1, last),
      },
      {
        name: 'no cache, window: large bucket, first pages',
        subject: cold,
        path: '/',
        load: random(large.token, 1, 100),
      },
      {
        name: 'no cache, window: large bucket, 90 % depth',
        subject: cold,
        path: '/',
        load: random(large.token, deep, deep + 99),
      },
    ]
    rows.push(...(await rounds(coldCases, extent, tell)))
    return rows
  } finally {
    for (const stop of stops.reverse()) await stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}

async function rounds(cases: readonly Case[], extent: Extent, tell: (text: string) => void): Promise<Row[]> {
  const taken = cases.map((): Measure[] => [])
  for (let round = 1; round <= extent.rounds; round += 1) {
    for (const [index, { name, subject, path, load, refusals }] of cases.entries()) {
      const result = await measure(subject, path, { ...load, seconds: extent.seconds }, refusals)
      taken[index]?.push(result)
      tell(
        `round ${round}: ${name}: ${result.perSecond.toFixed(0)}/s, ${(result.cpuPerRequest * 1e6).toFixed(1)} µs CPU`,
      )
    }
  }
  return cases.map(({ name }, index) => ({ name, measure: middle(taken[index] ?? []) }))
}

const middle = (all: readonly Measure[]): Measure => ({
  perSecond: median(all.map((one) => one.perSecond)),
  bytesPerSecond: median(all.map((one) => one.bytesPerSecond)),
  cpuPerRequest: median(all.map((one) => one.cpuPerRequest)),
  p50: median(all.map((one) => one.p50)),
  p99: median(all.map((one) => one.p99)),
})

const pages = (total: number) => Math.max(1, Math.ceil(total / 10))

const get = (subject: Subject, path: string, token: string) =>
  fetch(subject.url + path, { headers: { authorization: `Bearer ${token}`, 'accept-encoding': 'identity' } })

function run(data: string, ...args: string[]): string {
  return execFileSync('node', [bin, ...args], {
    env: { PATH: process.env['PATH'], MEDIABUCKET_DATA: data },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

function seed(
  data: string,
  bucket: string,
  items: number,
  ...more: string[]
): { token: string; total: number } {
  const printed = run(data, 'seed', '--items', String(items), '--bucket', bucket, ...more)
  return JSON.parse(printed.trim().split('\n').at(-1) ?? '')
}

/** A token of the right form that this service never issued. */
function unknownToken(data: string): string {
  return run(`${data}-elsewhere`, 'token', 'create', '--bucket', 'elsewhere').trim()
}
