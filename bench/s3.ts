import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createBucket, startCeph, stopCeph } from '../test/harness/ceph.ts'
import { type Bucket, fillBuckets } from './buckets.ts'
import { startMediabucket } from './mediabucket.ts'
import { type Row, runInTurn } from './rounds.ts'
import type { Measure, Subject } from './subject.ts'
import { getFile, runTransfer, transferOf } from './transfers.ts'

interface Extent {
  readonly rounds: number
  /** Bytes of a file. */
  readonly size: number
}

export interface S3Results {
  readonly rows: readonly Row[]
  /** Peak resident bytes during uploads, minus those of the server after its start. */
  readonly rssGrowth: number
}

/** One large file to and from an S3 store, against the SDK alone. All processes share both cores. */
export async function benchS3({ rounds, size }: Extent, report: (text: string) => void): Promise<S3Results> {
  const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
  const stops: (() => Promise<void>)[] = []
  try {
    report('starting Ceph')
    const directory = join(scratch, 'ceph')
    mkdirSync(directory)
    stops.push(() => stopCeph(directory))
    const gateway = await startCeph(directory)
    const name = await createBucket(gateway)
    const keys = { AWS_ACCESS_KEY_ID: gateway.accessKey, AWS_SECRET_ACCESS_KEY: gateway.secretKey }

    const data = join(scratch, 'data')
    const [bucket] = await fillBuckets(data, [{ bucket: 'files', items: 0 }])
    if (!bucket) throw new Error('no bucket')
    const endpoint = encodeURIComponent(gateway.endpoint)
    const service = await startMediabucket(
      data,
      { ...keys, MEDIABUCKET_BLOBS_URL: `s3://${name}/files?endpoint=${endpoint}` },
      'mediabucket',
      'together',
    )
    stops.push(service.stop)

    const sdk = (direction: string, key: string) => async () => {
      const args = [direction, gateway.endpoint, name, key, `${size}`]
      const { milliseconds } = await runTransfer('yardsticks/sdk-transfer.ts', args, keys)
      return transferOf(milliseconds, size, 0)
    }
    const fresh = service.rss()
    let rssGrowth = 0
    const uploaded = randomUUID()
    const uploads = await runInTurn(
      [
        { id: "upload with the SDK's Upload", run: sdk('put', uploaded) },
        {
          id: 'upload to the service',
          async run() {
            service.resetPeak()
            const measured = await upload(service, bucket, size)
            rssGrowth = Math.max(rssGrowth, service.peakRss() - fresh)
            return measured
          },
        },
      ],
      rounds,
      report,
    )
    const path = ((await sendOnce(service, bucket, size)).location ?? '').replace('/api', '')
    const downloads = await runInTurn(
      [
        { id: "download with the SDK's GetObject", run: sdk('get', uploaded) },
        {
          id: 'download from the service',
          run: () => getFile(service, new URL(path, service.url).href, size),
        },
      ],
      rounds,
      report,
    )
    return { rows: [...uploads, ...downloads], rssGrowth }
  } finally {
    for (const stop of stops.reverse()) await stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}

const sendOnce = (service: Subject, { token }: Bucket, size: number) =>
  runTransfer('loads/send-file.ts', ['raw', service.url, `${size}`, token])

/** Sends a file and deletes its item. */
async function upload(service: Subject, bucket: Bucket, size: number): Promise<Measure> {
  const before = service.cpu()
  const found = await sendOnce(service, bucket, size)
  const cpu = service.cpu() - before
  const headers = { authorization: `Bearer ${bucket.token}` }
  const removed = await fetch(new URL(found.location ?? '', service.url), { method: 'DELETE', headers })
  if (removed.status !== 204) throw new Error(`a removal got ${removed.status}`)
  return transferOf(found.milliseconds, size, cpu)
}
