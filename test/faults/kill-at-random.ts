import { setTimeout } from 'node:timers/promises'
import { usePostgres, useS3 } from '../harness/database.ts'
import { until } from '../harness/until.ts'
import { checkAuditLog, checkCleared, checkLeftovers } from './check-leftovers.ts'
import { watchUsage } from './check-usage.ts'
import { type Clients, createClients } from './clients.ts'
import { type Fault, onEngines, verdictOf } from './fault.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { openOtherServer } from './other-server.ts'
import { type Instance, openInstances } from './server-instances.ts'

/** Rounds on one data directory; then it is checked completely, and a new one is created. */
const roundsEach = 10

/** Maximum milliseconds of work before the kill, and uploads that are acknowledged before, also on a busy machine. */
const longest = 400
const before = 12

const atOnce = 6

/** Downloads are in the audit log, with which the usage is compared. */
const audited = { MEDIABUCKET_AUDIT: 'all' }

interface Killed {
  /** Completes before the work starts. */
  readonly prepare?: (clients: Clients, instance: Instance) => Promise<unknown>
  /** Continues until the kill. */
  readonly work: (clients: Clients, instance: Instance) => Promise<void>
  /** Uploads that are acknowledged before the time to the kill begins, at most. */
  readonly uploads: number
}

async function onOneDirectory(
  rounds: number,
  onRound: () => void,
  { prepare, work, uploads }: Killed,
): Promise<Ledger> {
  await using instances = await openInstances()
  const ledger = createLedger()
  await using other = await openOtherServer(ledger.random)
  const clients = createClients(ledger, undefined, other)
  // A third of the directories have their files scanned.
  const settings = { ...audited, ...(ledger.random(3) === 0 ? other.scanSettings : other.settings) }
  let instance = await instances.start(settings)
  // On a busy machine, the service can be killed in each round before it acknowledges an upload.
  await clients.raw(instance)
  for (let round = 0; round < rounds; round += 1) {
    await prepare?.(clients, instance)
    other.disturb()
    const wanted = ledger.tally.acknowledged + ledger.random(uploads + 1)
    const working = work(clients, instance)
    await until('acknowledged uploads', () => ledger.tally.acknowledged >= wanted, 600_000)
    await setTimeout(ledger.random(longest))
    await instance.server.kill()
    await working
    other.calm()
    instance = await instances.start(settings)
    // A start removes the files of interrupted uploads.
    await checkCleared(instances.directory, ['tmp'], ledger)
    await ledger.check(instance, 'new')
    ledger.tally.rounds += 1
    onRound()
  }
  await instance.server.kill()
  const checkUsage = await watchUsage(instances.directory, ledger)
  instance = await instances.start(settings)
  await clients.resumeAll(instance)
  await ledger.check(instance)
  await instance.server.stop()
  await checkAuditLog(instances.directory, ledger)
  await checkUsage()
  await checkLeftovers(instances.directory, ledger)
  return ledger
}

const killing =
  (killed: Killed, each = roundsEach): Fault['run'] =>
  async (rounds, onRound) => {
    const ledgers: Ledger[] = []
    for (let done = 0; done < rounds; done += each)
      ledgers.push(await onOneDirectory(Math.min(each, rounds - done), onRound, killed))
    return verdictOf(...ledgers)
  }

export const killDuringUploads: Fault = {
  title: 'kill -9 at random during uploads, resumptions and deletes',
  run: killing({ work: (clients, instance) => clients.workUntilGone(instance, atOnce), uploads: before }),
}

export const killDuringUploadsOnPostgres = onEngines(killDuringUploads, 'PostgreSQL', usePostgres)
export const killDuringUploadsOnS3 = onEngines(killDuringUploads, 'S3', useS3)
export const killDuringUploadsOnPostgresAndS3 = onEngines(
  killDuringUploads,
  'PostgreSQL and S3',
  usePostgres,
  useS3,
)

export const killInARow: Fault = {
  title: 'consecutive crashes on one data directory, under load',
  run: killing(
    { work: (clients, instance) => clients.workUntilGone(instance, atOnce), uploads: before },
    Number.POSITIVE_INFINITY,
  ),
}

export const killDuringDeletes: Fault = {
  title: 'kill -9 during deletes',
  run: killing({
    // Enough items to delete until the kill.
    prepare: (clients, instance) => Promise.all(Array.from({ length: 20 }, () => clients.raw(instance))),
    work: (clients, instance) => clients.removeUntilGone(instance, atOnce),
    uploads: 0,
  }),
}
