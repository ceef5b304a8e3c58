import { withoutPassword } from '../packages/server/src/core/storage-urls.ts'
import { workOn } from '../test/faults/cluster-work.ts'
import { createLedger } from '../test/faults/ledger.ts'
import { type Instance, instanceOf } from '../test/faults/server-instances.ts'
import prepareCeph, { s3Settings } from '../test/harness/ceph.ts'
import { onServer, rowsOf } from '../test/harness/postgres.ts'
import { openProxy } from '../test/harness/proxy.ts'
import { startReplicatedPostgres } from '../test/harness/replicated-postgres.ts'
import { startServer } from '../test/harness/server.ts'
import { needTools } from '../test/harness/tools.ts'
import { until } from '../test/harness/until.ts'
import { listAll, outcome } from '../test/harness/upkeep.ts'
import type { Steps } from './steps.ts'

const firstUploads = 20

/** Clients that upload, list and delete at the same time. */
const clientCount = 8

/** Uploads that are acknowledged before and after each failure. */
const between = 50

/** Milliseconds. */
const uploadTimeout = 120_000
const progressInterval = 2_000

export async function loseServerAndPrimary(steps: Steps): Promise<void> {
  needTools('postgres', 'ceph-mon', 'ceph-osd', 'radosgw', 'radosgw-admin', 'nginx')
  await using cleanUp = new AsyncDisposableStack()
  const database = cleanUp.use(
    await steps.run(
      'Starting PostgreSQL: a primary, and a replica that has every acknowledged commit',
      startReplicatedPostgres,
    ),
  )
  await onServer(database.primary().url('postgres'), 'CREATE DATABASE mediabucket')
  const store = await steps.run("Starting Ceph's S3 gateway", async () => {
    cleanUp.defer(await prepareCeph())
    return s3Settings()
  })
  const proxy = cleanUp.use(await openProxy('nginx before several servers'))
  const settings = {
    ...store,
    MEDIABUCKET_DATABASE_URL: database.url('mediabucket'),
    MEDIABUCKET_INLINE_SIZE: '5kB',
    MEDIABUCKET_BASE_URL: proxy.url,
    MEDIABUCKET_TRUSTED_PROXIES: 'loopback',
  }
  const [first, second, third] = await steps.run(
    'Starting three servers, and nginx in front of them',
    async () => {
      const start = async () => cleanUp.use(await startServer(settings))
      const servers = [await start(), await start(), await start()] as const
      await proxy.start(servers.map(({ url }) => url))
      return servers
    },
  )
  steps.note(`MEDIABUCKET_DATABASE_URL=${withoutPassword(settings.MEDIABUCKET_DATABASE_URL)}`)

  const { token } = first
  const authorization = `Bearer ${token}`
  const at = (url: string): Instance =>
    instanceOf({ ...first, url, request: (path, init) => fetch(new URL(path, url), init) }, token)
  const ledger = createLedger()
  const { clients, work } = workOn(() => [at(proxy.url)], ledger)
  const acknowledged = (more: number) => {
    const wanted = ledger.tally.acknowledged + more
    return until('further uploads', () => ledger.tally.acknowledged >= wanted, uploadTimeout)
  }

  await steps.run(
    `Uploading ${firstUploads} files through the first server, listing them through the second`,
    async () => {
      for (let count = 0; count < firstUploads; count += 1) await clients.raw(at(first.url))
      const listed = await listAll(at(second.url).server, authorization)
      steps.expect(`the second server lists ${firstUploads} files`, listed.length === firstUploads)
    },
  )

  steps.note(
    `Now ${clientCount} clients upload, list and delete through nginx until the end of the failures.`,
  )
  let isDone = false
  const working = work(() => isDone, clientCount)
  const progress = setInterval(
    () => steps.note(`… ${ledger.tally.acknowledged} uploads acknowledged`),
    progressInterval,
  )
  try {
    await acknowledged(between)
    await steps.run('Killing the third server (SIGKILL)', third.kill)
    await acknowledged(between)
    steps.note(`${between} further uploads were acknowledged.`)

    await steps.run('Killing all processes of the primary of PostgreSQL (SIGKILL)', database.killPrimary)
    const killed = performance.now()
    await until('the end of readiness', async () => (await fetch(`${first.url}/readyz`)).status === 503)
    steps.note('The servers report that they are not ready; uploads receive 503, and clients repeat them.')
    await steps.run('Promoting the replica (pg_promote)', database.promote)
    await acknowledged(1)
    const seconds = ((performance.now() - killed) / 1000).toFixed(1)
    steps.note(`The first upload was acknowledged ${seconds} s after the end of the primary.`)
    await acknowledged(between)
  } finally {
    isDone = true
    clearInterval(progress)
    await working
  }
  const running = [first, second].every(
    ({ process }) => process.exitCode === null && process.signalCode === null,
  )
  steps.expect('uploads go on, and neither the first nor the second server was restarted', running)

  await steps.run(
    'Finishing interrupted uploads; then listing everything, and hashing all bytes',
    async () => {
      await clients.resumeAll(at(second.url))
      await ledger.check(at(second.url))
      await ledger.check(at(proxy.url))
      for (const fault of ledger.faults) steps.note(fault)
      const { acknowledged: count, lost, halfVisible, returned } = ledger.tally
      steps.expect(`${count} uploads were acknowledged; each is listed once with its bytes`, lost === 0)
      steps.expect('no upload is listed in part', halfVisible === 0)
      steps.expect('no deleted item is listed', returned === 0)
    },
  )
  await steps.run('Starting another server, which completes interrupted deletes', async () => {
    const other = cleanUp.use(await startServer(settings))
    const tombstones = () => rowsOf(database.primary().url('mediabucket'), 'SELECT 1 FROM tombstones')
    await until('the end of deletes', async () => (await tombstones()).length === 0)
    await Promise.all([first, second, other].map(({ stop }) => stop()))
  })
  await steps.run('Checking rows and bytes: mediabucket fsck --verify-bytes', async () => {
    const { code, stdout, stderr } = await outcome(['fsck', '--verify-bytes'], first.data, settings)
    for (const line of `${stdout}${stderr}`.trim().split('\n')) steps.note(line)
    steps.expect('fsck finds nothing', code === 0)
  })
}
