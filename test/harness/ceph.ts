import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from './free-port.ts'
import { oncePerRun } from './once-per-run.ts'
import { isRunning, signal } from './processes.ts'
import { needTools } from './tools.ts'
import { until } from './until.ts'

const run = promisify(execFile)

/** Loaded by the first test that needs it: every process of the tests imports this module, and loading takes 0.15 s of CPU time. */
const sdk = () => import('@aws-sdk/client-s3')

/** A gateway that stores objects in memory, and the keys of its user. */
export interface Gateway {
  readonly endpoint: string
  readonly accessKey: string
  readonly secretKey: string
  /** Contains the configuration and the process ids of the cluster. */
  readonly directory: string
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
  return JSON.parse(await oncePerRun(directory, async () => JSON.stringify(await startCeph(directory))))
}

let bucket: Promise<string> | null = null

/** A new bucket. Returns its name. */
export async function createBucket({ endpoint, accessKey, secretKey }: Gateway): Promise<string> {
  const { CreateBucketCommand, S3Client } = await sdk()
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

/** The settings of a server that stores all files in a new place in the store, through a proxy if its address is given. */
export async function s3Settings(proxy?: string): Promise<Readonly<Record<string, string>>> {
  const { name, gateway: started } = await testBucket()
  const endpoint = encodeURIComponent(proxy ?? started.endpoint)
  return {
    MEDIABUCKET_BLOBS_URL: `s3://${name}/${randomUUID()}?endpoint=${endpoint}`,
    MEDIABUCKET_INLINE_SIZE: '0',
    AWS_ACCESS_KEY_ID: started.accessKey,
    AWS_SECRET_ACCESS_KEY: started.secretKey,
  }
}

/** The place of a server with these settings in the store, and a client for it. */
async function placeOf(settings: Readonly<Record<string, string>>) {
  const { endpoint, accessKey, secretKey } = await gateway()
  const { host: bucket, pathname } = new URL(settings['MEDIABUCKET_BLOBS_URL'] ?? '')
  const { S3Client } = await sdk()
  const client = new S3Client({
    ...{ endpoint, region: 'us-east-1', forcePathStyle: true },
    credentials: { accessKeyId: accessKey, secretAccessKey: secretKey },
  })
  return { Bucket: bucket, prefix: `${pathname.slice(1)}/`, client }
}

/** Blobs and multipart uploads of a server with these settings. */
export async function countObjects(
  settings: Readonly<Record<string, string>>,
): Promise<{ stored: number; temporary: number }> {
  const { ListMultipartUploadsCommand, ListObjectsV2Command } = await sdk()
  const { Bucket, prefix: Prefix, client } = await placeOf(settings)
  const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket, Prefix }))
  const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket, Prefix }))
  client.destroy()
  const blobs = Contents.filter(({ Key }) => !/identity$|variants/.test(Key ?? ''))
  return { stored: blobs.length, temporary: Uploads.length }
}

/** Changes objects of a server with these settings directly. Names are relative to its prefix. */
export async function objectsOf(settings: Readonly<Record<string, string>>) {
  const { DeleteObjectCommand, GetObjectCommand, ListObjectsV2Command, PutObjectCommand } = await sdk()
  const { Bucket, prefix, client } = await placeOf(settings)
  return {
    async put(name: string, Body: string | Uint8Array): Promise<void> {
      await client.send(new PutObjectCommand({ Bucket, Key: prefix + name, Body }))
    },
    async remove(name: string): Promise<void> {
      await client.send(new DeleteObjectCommand({ Bucket, Key: prefix + name }))
    },
    async read(name: string): Promise<string | undefined> {
      const { Body } = await client.send(new GetObjectCommand({ Bucket, Key: prefix + name }))
      return await Body?.transformToString()
    },
    async names(): Promise<string[]> {
      const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket, Prefix: prefix }))
      return Contents.map(({ Key = '' }) => Key.slice(prefix.length))
    },
  }
}

/** Attempts to start a cluster. */
const attempts = 3

/** Starts a cluster with a gateway. Ports can be taken in the meantime, so it tries again. */
export async function startCeph(directory: string): Promise<Gateway> {
  needTools('ceph-mon', 'ceph-osd', 'radosgw', 'radosgw-admin')
  for (let attempt = 1; ; attempt += 1) {
    const own = join(directory, `${attempt}`)
    await mkdir(own)
    try {
      return await startOnce(own)
    } catch (error) {
      await endProcesses(own)
      if (attempt === attempts) throw error
      console.error('Ceph did not start; trying again.', error)
    }
  }
}

/** Starts a monitor, a store in memory and a gateway; about 12 seconds. */
async function startOnce(directory: string): Promise<Gateway> {
  const [monitor, port] = [await freePort(), await freePort()]
  const [cluster, osd] = [randomUUID(), randomUUID()]
  await writeFile(
    join(directory, 'ceph.conf'),
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
memstore_device_bytes=8G
rgw_data=${directory}/rgw
rgw_frontends=beast endpoint=127.0.0.1:${port}
rgw_mp_lock_max_time=${completionLock / 1_000}
`,
  )
  const ceph = commandsOf(directory)
  for (const name of ['mon', 'osd', 'rgw']) await mkdir(join(directory, name))
  const map = join(directory, 'monmap')
  await ceph('monmaptool', '--create', '--fsid', cluster, '--addv', 'a', `v1:127.0.0.1:${monitor}`, map)
  await ceph('ceph-mon', '-i', 'a', '--mkfs', '--monmap', map)
  await ceph('ceph-mon', '-i', 'a')
  await ceph('ceph', 'osd', 'new', osd)
  await ceph('ceph-osd', '-i', '0', '--mkfs', '--osd-uuid', osd)
  // Without `--no-mon-config`, the store takes the cluster's id from a map that the monitor sends. Its first command fails with "wrong fsid"
  // if the map comes late, as on a busy machine.
  await ceph('ceph-osd', '-i', '0', '--no-mon-config')
  const endpoint = `http://127.0.0.1:${port}`
  await startGateway({ endpoint, directory })
  const keys = { accessKey: 'testkey', secretKey: 'testsecret' }
  await ceph(
    'radosgw-admin',
    ...['user', 'create', '--uid=test', '--display-name=test', '--max-buckets=0'],
    ...[`--access-key=${keys.accessKey}`, `--secret-key=${keys.secretKey}`],
  )
  return { endpoint, ...keys, directory }
}

const commandsOf =
  (directory: string) =>
  (program: string, ...args: string[]) =>
    run(program, args, {
      env: { PATH: `${process.env['PATH']}:/usr/sbin`, CEPH_CONF: join(directory, 'ceph.conf') },
    })

/** How long the gateway refuses to complete a multipart upload after it was killed while it did so. Milliseconds. */
export const completionLock = 20_000

/** Starts the gateway of a cluster, also again after `killGateway`. */
export async function startGateway({ endpoint, directory }: Pick<Gateway, 'endpoint' | 'directory'>) {
  await commandsOf(directory)('radosgw', '-n', 'client.rgw')
  const responds = () =>
    fetch(endpoint).then(
      () => true,
      () => false,
    )
  await until('a response of the gateway', responds, 120_000)
}

/** Kills the gateway (SIGKILL), not the store behind it. */
export async function killGateway({ directory }: Pick<Gateway, 'directory'>): Promise<void> {
  const pid = Number(await readFile(join(directory, 'client.rgw.pid'), 'utf8'))
  process.kill(pid, 'SIGKILL')
  await until('the end of the gateway', () => !isRunning(pid))
}

/** Ends the gateway, then the store, then the monitor of the cluster in a directory. */
async function endProcesses(directory: string): Promise<void> {
  for (const name of ['client.rgw', 'osd.0', 'mon.a']) {
    const pid = Number(await readFile(join(directory, `${name}.pid`), 'utf8').catch(() => ''))
    if (!(pid > 0)) continue
    signal(pid, 'SIGTERM')
    await until(`the end of process ${pid}`, () => !isRunning(pid), 5_000).catch(() => signal(pid, 'SIGKILL'))
  }
}

/** Ends the cluster that was started in a directory. */
export async function stopCeph(directory: string): Promise<void> {
  for (let attempt = 1; attempt <= attempts; attempt += 1) await endProcesses(join(directory, `${attempt}`))
}

/** Vitest's global set-up: the directory of the run's cluster, which ends with the run. */
export default async function prepareCeph(): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'mediabucket-ceph-'))
  process.env[directoryVariable] = directory
  return async () => {
    await stopCeph(directory)
    await rm(directory, { recursive: true, force: true })
  }
}
