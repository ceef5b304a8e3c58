import { setTimeout } from 'node:timers/promises'
import { isRunning } from '../harness/processes.ts'
import { until } from '../harness/until.ts'
import { listeningWorkers, workersOf } from '../harness/workers.ts'
import { checkLeftovers } from './check-leftovers.ts'
import { createClients } from './clients.ts'
import { type Fault, verdictOf } from './fault.ts'
import { createLedger } from './ledger.ts'
import { openOtherServer } from './other-server.ts'
import { openInstances } from './server-instances.ts'

const workers = 2
const settings = { MEDIABUCKET_WORKERS: `${workers}`, MEDIABUCKET_LOG_LEVEL: 'error' }

/** Minimum milliseconds before a kill: the service ends if workers end within a second, again and again. */
const shortest = 1_000

/** Maximum milliseconds of further work before and after a kill. */
const longest = 400

const atOnce = 6

/** Kills a random worker under load while the others continue, again and again on one running service. */
export const killWorkers: Fault = {
  title: 'kill -9 of a worker while other workers continue',
  async run(rounds, onRound) {
    await using instances = await openInstances()
    const ledger = createLedger()
    await using other = await openOtherServer(ledger.random)
    const clients = createClients(ledger, undefined, other)
    const all = { ...settings, ...(ledger.random(2) ? other.scanSettings : other.settings) }
    const instance = await instances.start(all)
    // On a busy machine, no upload is acknowledged in the time of a short run.
    await clients.raw(instance)
    for (let round = 0; round < rounds; round += 1) {
      let isDone = false
      const working = clients.workUntil(() => isDone, instance, atOnce)
      await setTimeout(shortest + ledger.random(longest))
      const victim = workersOf(instance.server)[ledger.random(workers)]
      if (victim !== undefined) process.kill(victim, 'SIGKILL')
      await setTimeout(ledger.random(longest))
      // Until then it counts as listening.
      await until('the end of the worker', () => victim === undefined || !isRunning(victim))
      await listeningWorkers(instance.server, workers)
      isDone = true
      await working
      await ledger.check(instance, 'new')
      ledger.tally.rounds += 1
      onRound()
    }
    await clients.resumeAll(instance)
    await ledger.check(instance)
    await instance.server.stop()
    // A start removes the blobs of interrupted uploads.
    const last = await instances.start(all)
    await ledger.check(last)
    await last.server.stop()
    await checkLeftovers(instances.directory, ledger)
    return verdictOf(ledger)
  },
}
