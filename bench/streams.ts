import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { issueToken } from '../packages/server/src/access/token-operations.ts'
import { defaultScopes } from '../packages/server/src/core/token-rules.ts'
import { openSqliteCatalog } from '../packages/server/src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { startMediabucket } from './mediabucket.ts'
import type { Row } from './rounds.ts'
import { seedBucket } from './seed.ts'
import { measure, type Subject } from './subject.ts'

/** How many: the short form proves that the bench runs, and measures nothing. */
export interface StreamsExtent {
  readonly rounds: number
  readonly seconds: number
  /** Items of the bucket of one stream, and of that of many. */
  readonly large: number
  readonly small: number
  /** Streams that a client reads, those of the case with more of them, and those that nobody reads. */
  readonly few: number
  readonly many: number
  readonly unread: number
}

export interface StreamsResults {
  readonly rows: readonly Row[]
  /** The growth of the peak of resident memory beside the streams that nobody reads. Bytes. */
  readonly unreadMemory: number
}

const Begun = Type.Object({ refused: Type.Number() })

/** Streams of one token; the service limits their number. */
const streamsPerToken = 10

/** The other client, and what it requests. */
export const requests = { page: '/api/media', health: '/healthz' } as const
export const cases = ['quiet', 'one stream', 'few streams', 'many streams', 'unread streams'] as const
export const titleOf = (request: keyof typeof requests, name: (typeof cases)[number]): string =>
  `${request}, ${name}`

/** Measures the requests of another client beside streams of items (docs/interface.md K10). */
export async function benchStreams(
  extent: StreamsExtent,
  report: (text: string) => void,
): Promise<StreamsResults> {
  const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
  const data = join(scratch, 'data')
  const { large, small, few, many, unread } = extent
  report('filling the buckets')
  const catalog = await openSqliteCatalog({ directory: data, writer: 'direct' })
  for (const [bucket, items] of Object.entries({ large, small, other: 1000 }))
    await seedBucket(catalog, bucket, { items })
  const tokenOf = async (bucket: string) =>
    (
      await issueToken(catalog, {
        bucket,
        name: 'bench',
        scopes: defaultScopes,
        expiresAt: null,
        now: Date.now(),
      })
    ).token
  const tokens = { large: await tokenOf('large'), other: await tokenOf('other') }
  const others: string[] = []
  while (others.length * streamsPerToken < Math.max(many, unread)) others.push(await tokenOf('small'))
  await catalog.close()
  /** A token for each of so many streams. */
  const spread = (count: number) =>
    Array.from({ length: count }, (_, index) => others[Math.floor(index / streamsPerToken)] ?? '')
  const loads = [
    { name: 'quiet', streams: [], form: 'read' },
    { name: 'one stream', streams: [tokens.large], form: 'read' },
    { name: 'few streams', streams: spread(few), form: 'read' },
    { name: 'many streams', streams: spread(many), form: 'read' },
    { name: 'unread streams', streams: spread(unread), form: 'hold' },
  ] as const

  // Streams that nobody reads stay open.
  const settings = { MEDIABUCKET_LOG_LEVEL: 'warn', MEDIABUCKET_IDLE_TIMEOUT: '10h' }
  const subject = await startMediabucket(data, settings)
  try {
    const taken = new Map<string, Row[]>()
    let unreadMemory = 0
    for (let round = 1; round <= extent.rounds; round += 1) {
      for (const { name, streams, form } of loads) {
        report(`round ${round}: ${name}`)
        subject.resetPeak()
        const before = subject.peakRss()
        const held = await openStreams(subject, join(scratch, 'tokens'), streams, form)
        for (const request of ['page', 'health'] as const) {
          const headers = [`Authorization: Bearer ${tokens.other}`]
          const load = { connections: 1, seconds: extent.seconds, headers }
          const id = titleOf(request, name)
          const row = { id, measure: await measure(subject, requests[request], load) }
          taken.set(id, [...(taken.get(id) ?? []), row])
        }
        if (name === 'unread streams') unreadMemory = Math.max(unreadMemory, subject.peakRss() - before)
        report(`${JSON.stringify(await held.end())}, ${Math.round((subject.peakRss() - before) / 1e6)} MB`)
      }
    }
    return { rows: [...taken.values()].map(medianOf), unreadMemory }
  } finally {
    await subject.stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** The round whose p99 is the median. */
function medianOf(rounds: readonly Row[]): Row {
  const sorted = rounds.toSorted((one, other) => one.measure.p99 - other.measure.p99)
  const row = sorted[sorted.length >> 1]
  if (!row) throw new Error('no rounds')
  return row
}

/** Opens the streams in a process on the core of the load, and resolves when all of them have begun. */
async function openStreams(
  subject: Subject,
  file: string,
  tokens: readonly string[],
  form: 'read' | 'hold',
): Promise<{ end(): Promise<unknown> }> {
  if (tokens.length === 0) return { end: async () => ({}) }
  writeFileSync(file, tokens.join('\n'))
  const script = resolve(import.meta.dirname, 'loads/read-streams.ts')
  const command = ['-c', subject.loadCores, 'node', script, subject.url, file, form]
  const child = spawn('taskset', command, { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })
  const { value: begun } = await lines.next()
  const { refused } = Value.Parse(Begun, JSON.parse(String(begun)))
  if (refused > 0) throw new Error(`${refused} of ${tokens.length} streams were refused`)
  return {
    async end() {
      child.stdin.end()
      const { value } = await lines.next()
      await once(child, 'exit')
      return JSON.parse(String(value))
    },
  }
}
