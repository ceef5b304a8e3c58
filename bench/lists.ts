import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ListObjectsV2Command, type ListObjectsV2CommandInput, type S3Client } from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { keyedBlock } from '../packages/server/src/storage/catalog/objects/keyed-counts.ts'
import { freePort } from '../test/harness/free-port.ts'
import { onServer } from '../test/harness/postgres.ts'
import { clientOf } from '../test/harness/s3-door.ts'
import { atMost, barTable } from './bars.ts'
import { type EnginePlace, onEachEngine } from './engines.ts'
import { createPair, startMediabucket } from './mediabucket.ts'
import { seedBucket } from './seed.ts'
import { measure } from './subject.ts'

/** How many; the short form proves that the bench runs. */
interface ListsExtent {
  /** A multiple of `folders`. */
  readonly keys: number
  /** Different lists of each kind. */
  readonly lists: number
  /** For which each kind is read, after as long a time that does not count. */
  readonly seconds: number
}

/** What the lists of one kind on one engine have taken. Milliseconds. */
interface ListTimes {
  readonly engine: string
  readonly kind: Kind
  readonly p50: number
  readonly p95: number
  /** CPU of the service for each list. */
  readonly cpu: number
}

const bucket = 'lists'

/** The keys are in so many folders, of the same size. A list has as many entries at most. */
const folders = 1_000

interface ListKind {
  /** The most milliseconds that the bars allow. */
  readonly limit: number
  /** `at` is a random number from 0 to 1. */
  readonly parameters: (keys: number, at: number) => Partial<ListObjectsV2CommandInput>
}

const kinds = {
  '1,000 common prefixes': { limit: 20, parameters: () => ({ Delimiter: '/' }) },
  '1,000 keys at any place': {
    limit: 10,
    parameters: (keys, at) => ({ StartAfter: keyOf(Math.floor(at * (keys - folders)), keys) }),
  },
  'the keys of a folder': {
    limit: 10,
    parameters: (_, at) => ({ Delimiter: '/', Prefix: `folder-${1_000 + Math.floor(at * folders)}/` }),
  },
} as const satisfies Record<string, ListKind>

type Kind = keyof typeof kinds

const kindNames = Object.keys(kinds) as Kind[]

/** The key of a number. As `seedKeys` writes it. */
const keyOf = (number: number, keys: number): string => {
  const size = keys / folders
  return `folder-${1_000 + Math.floor(number / size)}/object-${1_000 + (number % size)}.txt`
}

/** Pages of lists of a bucket with many keys, over the S3 protocol, on each engine. */
export async function benchLists(
  extent: ListsExtent,
  report: (text: string) => void,
): Promise<readonly ListTimes[]> {
  return (await onEachEngine((place) => benchEngine(place, extent, report))).flat()
}

async function benchEngine(
  place: EnginePlace,
  extent: ListsExtent,
  report: (text: string) => void,
): Promise<readonly ListTimes[]> {
  const { engine, directory, settings } = place
  report(`${engine}: storing ${extent.keys} keys`)
  await seedKeys(place, extent.keys)
  const pair = await createPair(directory, settings)
  const port = await freePort()
  const s3 = { ...settings, MEDIABUCKET_S3_PORT: `${port}` }
  const service = await startMediabucket(directory, s3, engine, 'together')
  const subject = { ...service, url: `http://127.0.0.1:${port}` }
  const client = clientOf(subject.url, pair)
  try {
    const found: ListTimes[] = []
    for (const kind of kindNames) {
      const paths = await signLists(client, kind, extent)
      await requireEntries(subject.url + paths[0], kind, extent)
      const file = join(directory, 'lists')
      writeFileSync(file, paths.join('\n'))
      // One client, whose program uses little of the cores that it shares with the service and the database.
      const load = { connections: 1, seconds: extent.seconds, script: [randomPaths, file] }
      // Not counted: the first lists, for which the engine prepares its statements, and V8 compiles the code.
      await measure(subject, '/', load)
      const { p50, p95, cpuPerRequest } = await measure(subject, '/', load)
      const cpu = cpuPerRequest * 1_000
      report(
        `${engine}: ${kind}: p50 ${p50.toFixed(2)} ms, p95 ${p95.toFixed(2)} ms, CPU ${cpu.toFixed(2)} ms`,
      )
      found.push({ engine, kind, p50, p95, cpu })
    }
    return found
  } finally {
    client.destroy()
    await subject.stop()
  }
}

/**
 * Adds items, then gives each a key with one statement: a write for each would take hours. The order of the keys is not that of the
 * items.
 */
async function seedKeys({ open, directory, settings }: EnginePlace, keys: number): Promise<void> {
  const catalog = await open()
  await seedBucket(catalog, bucket, { items: keys }).finally(catalog.close)
  const size = keys / folders
  const key = `'folder-' || (1000 + number / ${size}) || '/object-' || (1000 + number % ${size}) || '.txt'`
  const headers = `{"contentType":"text/plain","metadata":{},"checksum":{"algorithm":"CRC64NVME","value":"rosUhgp5mIg=","type":"FULL_OBJECT"}}`
  const statements = (bytesOf: (text: string) => string) => `
    INSERT INTO object_keys (bucket_id, key, item_id, item_size, etag, parts, public, headers, modified_at)
      SELECT bucket_id, ${bytesOf(key)}, id, size, '5d41402abc4b2a76b9719d911017c592', NULL, 0, '${headers}', created_at
      FROM (SELECT *, seq * 7919 % ${keys} AS number FROM items WHERE bucket_id > 0) AS items ORDER BY number;
    INSERT INTO keyed_counts (bucket_id, slot, items)
      SELECT bucket_id, seq / ${keyedBlock}, count(*) FROM items WHERE bucket_id > 0 GROUP BY 1, 2;`
  const url = settings['MEDIABUCKET_DATABASE_URL']
  if (url !== undefined) {
    await onServer(
      url,
      statements((text) => `convert_to(${text}, 'UTF8')`),
    )
    await onServer(url, 'VACUUM ANALYZE')
    // Otherwise PostgreSQL writes the pages of the load while the lists are read.
    await onServer(url, 'CHECKPOINT')
    return
  }
  const db = new DatabaseSync(join(directory, 'catalog.db'))
  try {
    db.exec(`BEGIN; ${statements((text) => `CAST(${text} AS BLOB)`)} COMMIT`)
  } finally {
    db.close()
  }
}

const randomPaths = resolve(import.meta.dirname, 'lua/random-paths.lua')

/** Signed paths of lists of one kind. */
async function signLists(client: S3Client, kind: Kind, { keys, lists }: ListsExtent): Promise<string[]> {
  const sign = async () => {
    const command = new ListObjectsV2Command({
      Bucket: bucket,
      ...kinds[kind].parameters(keys, Math.random()),
    })
    const { pathname, search } = new URL(await getSignedUrl(client, command, { expiresIn: 86_400 }))
    return pathname + search
  }
  return await Promise.all(Array.from({ length: lists }, sign))
}

async function requireEntries(url: string, kind: Kind, { keys }: ListsExtent): Promise<void> {
  const expected = kind === 'the keys of a folder' ? Math.min(keys / folders, 1_000) : 1_000
  const list = await (await fetch(url)).text()
  const [, count] = /<KeyCount>(\d+)</.exec(list) ?? []
  if (Number(count) !== expected) throw new Error(`a list has ${count ?? list} entries`)
}

/** The figures and their required values, as Markdown. */
export function reportLists(found: readonly ListTimes[]): string {
  const bars = found.map(({ engine, kind, p95 }) =>
    atMost(`${kind}, ${engine}, p95`, p95, kinds[kind].limit, 'ms', ''),
  )
  const times = found.map(
    ({ engine, kind, p50, cpu }) =>
      `${engine}, ${kind}: p50 ${p50.toFixed(2)} ms, ${cpu.toFixed(2)} ms of CPU of the service.`,
  )
  return [...barTable(bars), '', ...times, ''].join('\n')
}
