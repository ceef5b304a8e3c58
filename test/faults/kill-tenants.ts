import { setTimeout } from 'node:timers/promises'
import { usePostgres } from '../harness/database.ts'
import { makeServicePair } from '../harness/s3-door.ts'
import { makeToken } from '../harness/token.ts'
import { checkAuditLog, checkLeftovers, rowsIn } from './check-leftovers.ts'
import { createClients } from './clients.ts'
import { type Fault, onEngines, verdictOf } from './fault.ts'
import { createLedger } from './ledger.ts'
import { openInstances } from './server-instances.ts'
import { createTenants } from './tenants.ts'

/** Maximum milliseconds of work before the kill. */
const longest = 1_500

const atOnce = 6

/** Kills the service while buckets are created, set, filled and deleted beside the uploads to another bucket. */
const killWith = (title: string, settings: Readonly<Record<string, string>>): Fault => ({
  title,
  async run(rounds, onRound) {
    await using instances = await openInstances()
    const ledger = createLedger()
    const clients = createClients(ledger)
    let instance = await instances.start(settings)
    const { authorization } = await makeToken(instance.server, '--service', '--scope', 'buckets:manage')
    const tenants = createTenants(ledger, authorization, await makeServicePair(instance.server))
    // On a busy machine, no upload is acknowledged in the time of a short run.
    await clients.raw(instance)
    for (let round = 0; round < rounds; round += 1) {
      const working = Promise.all([
        clients.workUntilGone(instance, 2),
        tenants.workUntilGone(instance, atOnce),
      ])
      await setTimeout(ledger.random(longest))
      await instance.server.kill()
      await working
      instance = await instances.start(settings)
      await ledger.check(instance, 'new')
      await tenants.check(instance)
      ledger.tally.rounds += 1
      onRound()
    }
    await clients.resumeAll(instance)
    await ledger.check(instance)
    await tenants.removed(instance, (statement) => rowsIn(instances.directory, statement))
    await tenants.check(instance)
    await instance.server.stop()
    await checkAuditLog(instances.directory, ledger)
    await checkLeftovers(instances.directory, ledger)
    return verdictOf(ledger)
  },
})

export const killDuringBuckets = killWith(
  'kill -9 at random while buckets are created, set, filled and deleted',
  {},
)
export const killDuringBucketsOnPostgres = onEngines(killDuringBuckets, 'PostgreSQL', usePostgres)
export const killWorkersDuringBuckets = killWith(
  'kill -9 at random of a service of two processes while buckets are created, set, filled and deleted',
  { MEDIABUCKET_WORKERS: '2' },
)
