import { completionLock, gateway, killGateway, startGateway } from '../harness/ceph.ts'
import { type ReplicatedPostgres, startReplicatedPostgres } from '../harness/replicated-postgres.ts'
import { until } from '../harness/until.ts'
import { listeningWorkers, workersOf } from '../harness/workers.ts'
import { type Cluster, openCluster } from './cluster.ts'
import { workOn } from './cluster-work.ts'
import { type Fault, verdictOf } from './fault.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { openOtherServer } from './other-server.ts'

/** Rounds on one database; then rows and bytes are checked completely, and a new database is created. */
const roundsEach = 10

const atOnce = 16
const servers = 3

/** Uploads that are acknowledged before a fault, at most, and after it. */
const before = 20
const after = 5

/** All files are in the store. */
const inStore = { MEDIABUCKET_INLINE_SIZE: '0' }

/** Milliseconds of each response of a slow store. */
const slow = 5_000

interface Scene {
  readonly cluster: Cluster
  readonly database: ReplicatedPostgres
  readonly ledger: Ledger
  /** Waits until this many further uploads are acknowledged. */
  acknowledged(count: number): Promise<unknown>
}

async function onOneDatabase(
  database: ReplicatedPostgres,
  rounds: number,
  onRound: () => void,
  { inject, settings = {}, count = servers }: ClusterFault,
): Promise<Ledger> {
  const ledger = createLedger()
  // Uploads are repeated until they succeed, so no file is refused.
  await using other = await openOtherServer(ledger.random, () => false)
  const more = ledger.random(3) === 0 ? other.scanSettings : other.settings
  await using cluster = await openCluster({ database, servers: count, settings: { ...settings, ...more } })
  const { clients, work } = workOn(cluster.running, ledger, other)
  const acknowledged = (more: number) => {
    const wanted = ledger.tally.acknowledged + more
    return until(`${more} more uploads`, () => ledger.tally.acknowledged >= wanted, 180_000)
  }
  for (let round = 0; round < rounds; round += 1) {
    let isDone = false
    const working = work(() => isDone, atOnce)
    try {
      await acknowledged(1 + ledger.random(before))
      await inject({ cluster, database, ledger, acknowledged })
      await acknowledged(after)
    } finally {
      isDone = true
      await working
    }
    await cluster.idle()
    const [instance] = cluster.running()
    if (instance) await ledger.check(instance, 'new')
    ledger.tally.rounds += 1
    onRound()
  }
  for (const instance of cluster.running()) {
    await clients.resumeAll(instance, 3 * completionLock)
    await ledger.check(instance)
  }
  const found = await cluster.stopAndCheck()
  if (found !== null) ledger.fault('halfVisible', `fsck finds: ${found}`)
  return ledger
}

interface ClusterFault {
  readonly inject: (scene: Scene) => Promise<void>
  readonly settings?: Readonly<Record<string, string>>
  /** Servers; by default 3. */
  readonly count?: number
}

const injecting =
  (fault: ClusterFault): Fault['run'] =>
  async (rounds, onRound) => {
    await using database = await startReplicatedPostgres()
    const ledgers: Ledger[] = []
    for (let done = 0; done < rounds; done += roundsEach)
      ledgers.push(await onOneDatabase(database, Math.min(roundsEach, rounds - done), onRound, fault))
    return verdictOf(...ledgers)
  }

export const restartedDatabase: Fault = {
  title: 'cluster: PostgreSQL is restarted',
  run: injecting({
    inject: ({ database, ledger }) =>
      database.primary().control('-m', ledger.random(2) ? 'fast' : 'immediate', 'restart'),
  }),
}

export const terminatedBackends: Fault = {
  title: 'cluster: connections to PostgreSQL are terminated',
  run: injecting({
    async inject({ cluster, acknowledged }) {
      for (let time = 0; time < 5; time += 1) {
        await cluster.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.7`)
        await acknowledged(1)
      }
    },
  }),
}

export const failover: Fault = {
  title: 'cluster: the primary is killed, its standby promoted',
  run: injecting({
    async inject({ database, acknowledged }) {
      await database.killPrimary()
      await database.promote()
      await acknowledged(1)
      await database.addStandby()
    },
  }),
}

export const killedGateway: Fault = {
  title: 'cluster: the S3 gateway is killed',
  run: injecting({
    settings: inStore,
    async inject() {
      const started = await gateway()
      await killGateway(started)
      await startGateway(started)
    },
  }),
}

export const slowGateway: Fault = {
  title: 'cluster: the S3 gateway takes 5 s for each response',
  run: injecting({
    settings: inStore,
    async inject({ cluster, acknowledged }) {
      cluster.treatStore({ delay: slow })
      await acknowledged(after)
      cluster.treatStore('pass')
    },
  }),
}

export const killedServers: Fault = {
  title: 'cluster: two of three servers are killed',
  run: injecting({
    async inject({ cluster, ledger, acknowledged }) {
      for (let time = 0; time < 2; time += 1) {
        const all = cluster.running()
        const victim = all[ledger.random(all.length)]
        if (victim) await cluster.kill(victim)
        await acknowledged(ledger.random(after))
      }
      while (cluster.running().length < servers) await cluster.start()
    },
  }),
}

const workers = 2

export const killedWorker: Fault = {
  title: 'cluster: a worker is killed',
  run: injecting({
    count: 2,
    settings: { MEDIABUCKET_WORKERS: `${workers}` },
    async inject({ cluster, ledger }) {
      const all = cluster.running()
      const { server } = all[ledger.random(all.length)] ?? {}
      if (!server) throw new Error('no server is running')
      const victim = (await listeningWorkers(server, workers))[ledger.random(workers)]
      if (victim !== undefined) process.kill(victim, 'SIGKILL')
      await until('the end of the worker', () => !workersOf(server).includes(victim ?? 0))
      await listeningWorkers(server, workers)
    },
  }),
}
