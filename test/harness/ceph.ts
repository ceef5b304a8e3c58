import { execFile } from 'node:child_process'
import { randomInt, randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import {
  CreateBucketCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  S3Client,
} from '@aws-sdk/client-s3'
import { oncePerRun } from './once-per-run.ts'
import { hasTool } from './tools.ts'
import { until } from './until.ts'

const run = promisify(execFile)

/** The programs of a Ceph cluster with one gateway. */
export const hasCeph = ['ceph-mon', 'ceph-osd', 'radosgw', 'radosgw-admin', 'monmaptool'].every(hasTool)

/** A gateway that stores objects in memory, and the keys of its user. */
export interface Gateway {
  readonly endpoint: string
  readonly accessKey: string
  readonly secretKey: string
}

/** The directory of the cluster of this run; it is set by the global set-up. */
const directoryVariable = 'MEDIABUCKET_TEST_CEPH'

let starting: Promise<Gateway> | null = null

/** The gateway of this run. The first test that needs it starts it; it ends with the run. */
export function gateway(): Promise<Gateway> {
  starting ??= findOrStart()
  return starting
}

async function findOrStart(): Promise<Gateway> {
  const directory = process.env[directoryVariable]
  if (directory === undefined) throw new Error(`${directoryVariable} is not set`)
  return JSON.parse(
    await oncePerRun(directory, async () => JSON.stringify(await startWithRetries(directory))),
  )
}

let bucket: Promise<string> | null = null

/** A new bucket. Returns its name. */
export async function createBucket({ endpoint, accessKey, secretKey }: Gateway): Promise<string> {
  const name = `tests-${randomUUID()}`
  const client = new S3Client({
    ...{ endpoint, region: 'us-east-1', forcePathStyle: true },
    credentials: { accessKeyId: accessKey, secretAccessKey: secretKey },
  })
  await client.send(new CreateBucketCommand({ Bucket: name }))
  client.destroy()
  return name
}

/** A bucket on the gateway of this run. */
export async function testBucket(): Promise<{ readonly name: string; readonly gateway: Gateway }> {
  const started = await gateway()
  bucket ??= createBucket(started)
  return { name: await bucket, gateway: started }
}

/** The settings of a server that stores all files in a new place in the store. */
export async function s3Settings(): Promise<Readonly<Record<string, string>>> {
  const { name, gateway: started } = await testBucket()
  const endpoint = encodeURIComponent(started.endpoint)
  return {
    MEDIABUCKET_BLOBS_URL: `s3://${name}/${randomUUID()}?endpoint=${endpoint}`,
    MEDIABUCKET_INLINE_SIZE: '0',
    AWS_ACCESS_KEY_ID: started.accessKey,
    AWS_SECRET_ACCESS_KEY: started.secretKey,
  }
}

/** Blobs and multipart uploads of a server with these settings. */
export async function countObjects(
  settings: Readonly<Record<string, string>>,
): Promise<{ stored: number; temporary: number }> {
  const { endpoint, accessKey, secretKey } = await gateway()
  const { host: Bucket, pathname } = new URL(settings['MEDIABUCKET_BLOBS_URL'] ?? '')
  const Prefix = `${pathname.slice(1)}/`
  const client = new S3Client({
    ...{ endpoint, region: 'us-east-1', forcePathStyle: true },
    credentials: { accessKeyId: accessKey, secretAccessKey: secretKey },
  })
  const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket, Prefix }))
  const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket, Prefix }))
  client.destroy()
  const blobs = Contents.filter(({ Key }) => !/identity$|variants/.test(Key ?? ''))
  return { stored: blobs.length, temporary: Uploads.length }
}

/** A port that is free now. Not one of those that the system gives to outgoing connections, which could take it before its use. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000)
    const server = createServer()
    const isFree = await new Promise<boolean>((done) => {
      server.once('error', () => done(false))
      server.listen(port, '127.0.0.1', () => done(true))
    })
    await new Promise((done) => server.close(done))
    if (isFree) return port
  }
}

/** Attempts to start a cluster. */
const attempts = 3

async function startWithRetries(directory: string): Promise<Gateway> {
  for (let attempt = 1; ; attempt += 1) {
    const own = join(directory, `${attempt}`)
    await mkdir(own)
    try {
      return await startCeph(own)
    } catch (error) {
      await stopCeph(own)
      if (attempt === attempts) throw error
      console.error('Ceph did not start; trying again.', error)
    }
  }
}

/** Starts a monitor, a store in memory and a gateway; about 12 seconds. */
export async function startCeph(directory: string): Promise<Gateway> {
  const [monitor, port] = [await freePort(), await freePort()]
  const [cluster, osd] = [randomUUID(), randomUUID()]
  const configuration = join(directory, 'ceph.conf')
  await writeFile(
    configuration,
    `[global]
fsid=${cluster}
mon_host=v1:127.0.0.1:${monitor}
public_addr=127.0.0.1
cluster_addr=127.0.0.1
auth_cluster_required=none
auth_service_required=none
auth_client_required=none
keyring=/dev/null
run_dir=${directory}
pid_file=${directory}/$name.pid
admin_socket=${directory}/$name.asok
log_file=${directory}/$name.log
osd_pool_default_size=1
osd_pool_default_min_size=1
osd_pool_default_pg_num=1
osd_pool_default_pg_autoscale_mode=off
osd_crush_chooseleaf_type=0
mon_allow_pool_size_one=true
mon_data=${directory}/mon
osd_data=${directory}/osd
osd_objectstore=memstore
memstore_device_bytes=2G
rgw_data=${directory}/rgw
rgw_frontends=beast endpoint=127.0.0.1:${port}
`,
  )
  const ceph = (program: string, ...args: string[]) =>
    run(program, args, { env: { PATH: `${process.env['PATH']}:/usr/sbin`, CEPH_CONF: configuration } })
  for (const name of ['mon', 'osd', 'rgw']) await mkdir(join(directory, name))
  const map = join(directory, 'monmap')
  await ceph('monmaptool', '--create', '--fsid', cluster, '--addv', 'a', `v1:127.0.0.1:${monitor}`, map)
  await ceph('ceph-mon', '-i', 'a', '--mkfs', '--monmap', map)
  await ceph('ceph-mon', '-i', 'a')
  await ceph('ceph', 'osd', 'new', osd)
  await ceph('ceph-osd', '-i', '0', '--mkfs', '--osd-uuid', osd)
  await ceph('ceph-osd', '-i', '0')
  await ceph('radosgw', '-n', 'client.rgw')
  const endpoint = `http://127.0.0.1:${port}`
  await until(
    'a response of the gateway',
    () =>
      fetch(endpoint).then(
        () => true,
        () => false,
      ),
    120_000,
  )
  const keys = { accessKey: 'testkey', secretKey: 'testsecret' }
  await ceph(
    'radosgw-admin',
    ...['user', 'create', '--uid=test', '--display-name=test', '--max-buckets=0'],
    ...[`--access-key=${keys.accessKey}`, `--secret-key=${keys.secretKey}`],
  )
  return { endpoint, ...keys }
}

/** Ends the gateway, then the store, then the monitor of the cluster in a directory. */
export async function stopCeph(directory: string): Promise<void> {
  for (const name of ['client.rgw', 'osd.0', 'mon.a']) {
    const pid = Number(await readFile(join(directory, `${name}.pid`), 'utf8').catch(() => ''))
    if (!(pid > 0)) continue
    const isRunning = () => {
      try {
        process.kill(pid, 0)
        return true
      } catch {
        return false
      }
    }
    if (isRunning()) process.kill(pid, 'SIGTERM')
    await until(`the end of process ${pid}`, () => !isRunning(), 5_000).catch(() =>
      process.kill(pid, 'SIGKILL'),
    )
  }
}

/** Vitest's global set-up: the directory of the run's cluster, which ends with the run. */
export default async function prepareCeph(): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'mediabucket-ceph-'))
  process.env[directoryVariable] = directory
  return async () => {
    for (let attempt = 1; attempt <= attempts; attempt += 1) await stopCeph(join(directory, `${attempt}`))
    await rm(directory, { recursive: true, force: true })
  }
}
