import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { CreateBucketCommand, GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { type Gateway, startCeph, stopCeph } from '../test/harness/ceph.ts'
import { freePort } from '../test/harness/free-port.ts'
import { type Bar, measuresOf, reportTables } from './bars.ts'
import { createPair, startMediabucket } from './mediabucket.ts'
import { type Row, runInTurn } from './rounds.ts'
import { measure, processFigures, type Subject, startSubject } from './subject.ts'
import { getFile, sendFile } from './transfers.ts'
import { yardstickThreads } from './yardsticks/threads.ts'

/** How long and how large: the short form proves that the bench runs, and measures nothing. Sizes are bytes. */
interface Extent {
  readonly rounds: number
  readonly seconds: number
  readonly large: number
  /** Signed URLs of small puts. */
  readonly keys: number
}

/** Bytes of a small object. */
const small = 10_000
const bucket = 'objects'
/** A key that each round stores. wrk takes the first request to check the script, and does not send it. */
const storedKey = 'small/10'
const connections = 32

const local = (path: string) => resolve(import.meta.dirname, path)

/** A store with the S3 protocol, and signed URLs of it. */
interface Store {
  readonly subject: Subject
  sign(method: 'GET' | 'PUT', key: string): Promise<string>
}

/** Small and large objects to and from the service and Ceph's gateway, and the loops that only hash or send. Both share the cores. */
export async function benchObjects(extent: Extent, report: (text: string) => void): Promise<Row[]> {
  const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
  const stops: (() => Promise<void>)[] = []
  try {
    report('starting Ceph')
    const directory = join(scratch, 'ceph')
    mkdirSync(directory)
    stops.push(() => stopCeph(directory))
    const stores = [await openCeph(directory), await openService(join(scratch, 'data'))]
    stops.push(...stores.slice(1).map(({ subject }) => subject.stop))
    const files = join(scratch, 'files')
    mkdirSync(files)
    writeFileSync(join(files, 'large'), Buffer.alloc(extent.large, '0123456789'))
    const listening = (printed: string) => /listening on (\S+)/.exec(printed)?.[1] ?? null
    const yardstick = async (name: string, path: string, ...args: string[]) => {
      const command = ['node', local(`yardsticks/${path}`), ...args]
      const subject = await startSubject(name, command, yardstickThreads, listening, 'together')
      stops.push(subject.stop)
      return subject
    }
    const receiver = await yardstick('receiver', 'bare-receiver.ts', scratch, 'sha256', 'md5')
    const sender = await yardstick('sender', 'node-files.ts', files)

    report(`signing ${2 * extent.keys} URLs`)
    const smallPuts = await inTurn(stores, async (store, name) => {
      const paths = join(scratch, `${name}-puts`)
      const urls = []
      for (let at = 0; at < extent.keys; at += 1) urls.push(await store.sign('PUT', `small/${at}`))
      writeFileSync(paths, urls.map((url) => url.slice(new URL(url).origin.length)).join('\n'))
      const script = [local('lua/put-paths.lua'), paths, `${small}`]
      return {
        id: `10 kB puts, ${name}`,
        run: () => measure(store.subject, '/', { connections, seconds: extent.seconds, script }),
      }
    })
    const put = await runInTurn(smallPuts, extent.rounds, report)
    const smallGets = await inTurn(stores, async (store, name) => {
      const url = await store.sign('GET', storedKey)
      const path = url.slice(new URL(url).origin.length)
      return {
        id: `10 kB gets, ${name}`,
        run: () => measure(store.subject, path, { connections, seconds: extent.seconds }),
      }
    })
    const got = await runInTurn(smallGets, extent.rounds, report)
    const largePuts = await inTurn(stores, async (store, name) => {
      const url = await store.sign('PUT', 'large')
      return {
        id: `large puts, ${name}`,
        run: () => sendFile(store.subject, 'put', url, extent.large),
      }
    })
    const bare = {
      id: 'large puts, bare loop',
      run: () => sendFile(receiver, 'bare', receiver.url, extent.large),
    }
    const largePut = await runInTurn([bare, ...largePuts], extent.rounds, report)
    const largeGets = await inTurn(stores, async (store, name) => {
      const url = await store.sign('GET', 'large')
      return { id: `large gets, ${name}`, run: () => getFile(store.subject, url, extent.large) }
    })
    const sent = {
      id: 'large gets, bare loop',
      run: () => getFile(sender, `${sender.url}/large`, extent.large),
    }
    const largeGot = await runInTurn([sent, ...largeGets], extent.rounds, report)
    return [...put, ...got, ...largePut, ...largeGot]
  } finally {
    for (const stop of stops.reverse()) await stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}

async function inTurn<T>(
  stores: readonly Store[],
  make: (store: Store, name: string) => Promise<T>,
): Promise<T[]> {
  const made = []
  for (const store of stores) made.push(await make(store, store.subject.name))
  return made
}

/** A store at an endpoint, with an empty bucket. */
async function storeOf(subject: Subject, accessKeyId: string, secretAccessKey: string): Promise<Store> {
  const client = new S3Client({
    endpoint: subject.url,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey },
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  })
  await client.send(new CreateBucketCommand({ Bucket: bucket }))
  return {
    subject,
    sign(method, Key) {
      const object = { Bucket: bucket, Key }
      return method === 'GET'
        ? getSignedUrl(client, new GetObjectCommand(object), { expiresIn: 86_400 })
        : getSignedUrl(client, new PutObjectCommand(object), { expiresIn: 86_400 })
    },
  }
}

async function openCeph(directory: string): Promise<Store> {
  const gateway: Gateway = await startCeph(directory)
  const pid = Number(readFileSync(join(gateway.directory, 'client.rgw.pid'), 'utf8'))
  const figures = { ...processFigures(pid), loadCores: '0,1', stop: async () => {} }
  const subject = { name: 'radosgw', url: gateway.endpoint, pid, ...figures }
  return await storeOf(subject, gateway.accessKey, gateway.secretKey)
}

async function openService(data: string): Promise<Store> {
  const port = await freePort()
  const service = await startMediabucket(data, { MEDIABUCKET_S3_PORT: `${port}` }, 'mediabucket', 'together')
  const { accessKeyId, secretAccessKey } = await createPair(data)
  const subject = { ...service, url: `http://127.0.0.1:${port}` }
  return await storeOf(subject, accessKeyId, secretAccessKey)
}

/** The figures and their required values, as Markdown. */
export function reportObjects(rows: readonly Row[]): string {
  const of = measuresOf(rows)
  const ratio = (what: string, other: string, must: number): Bar => {
    const found = of(`${what}, mediabucket`).perSecond / of(`${what}, ${other}`).perSecond
    return {
      name: `${what}, against ${other}`,
      must: `≥ ${must} ×`,
      aim: '',
      found: `${found.toFixed(2)} ×`,
      met: found >= must,
    }
  }
  return reportTables(
    [
      ratio('10 kB puts', 'radosgw', 2),
      ratio('10 kB gets', 'radosgw', 2),
      ratio('large puts', 'bare loop', 0.8),
      ratio('large gets', 'bare loop', 0.8),
    ],
    rows,
  )
}
