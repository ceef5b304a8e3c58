import { once } from 'node:events'
import { until } from '../harness/until.ts'
import { checkLeftovers } from './check-leftovers.ts'
import { type Clients, createClients } from './clients.ts'
import { type Fault, verdictOf } from './fault.ts'
import { createLedger } from './ledger.ts'
import { withFailpoints } from './preload.ts'
import { type Instance, openInstances } from './server-instances.ts'
import { readReached, type StepName, steps, stepsOf } from './steps.ts'

const atOnce = 3

/** Sends requests until the failpoint has killed the service. */
export async function workInto(step: StepName, clients: Clients, instance: Instance): Promise<void> {
  const { process, data } = instance.server
  const exited = once(process, 'exit')
  const { by } = steps[step]
  if (by === 'upload') void clients.uploadUntilGone(instance, atOnce)
  if (by === 'resumable') void clients.resumableUntilGone(instance, atOnce)
  if (by === 'removal') void clients.removeUntilGone(instance, atOnce)
  await until(`the failpoint '${step}'`, () => process.signalCode ?? process.exitCode, 60_000)
  await exited
  if (process.signalCode !== 'SIGKILL' || readReached(data).join() !== step)
    throw new Error(`the service ended otherwise than at '${step}'`)
}

/** The next start completes a killed removal and must not be killed by it, so a step of an upload comes between. */
const inTurn: readonly StepName[] = stepsOf('removal')
  .flatMap((step, index) => [step, ...stepsOf('upload').slice(index, index + 1)])
  .concat(stepsOf('upload').slice(stepsOf('removal').length), stepsOf('resumable'))

/** A start that recovers from a killed upload removes bytes and syncs directories. */
const alsoReachedByStart: ReadonlySet<StepName> = new Set([
  'before the directory is synced',
  'directory synced',
])

/** The start must not be killed there. */
const isReachedByStart = (step: StepName): boolean =>
  steps[step].by === 'removal' || alsoReachedByStart.has(step)

/** Each round kills at one step, at its first, second or third occurrence. A run of fewer rounds than steps begins at a random one. */
export const killAtSteps: Fault = {
  title: `kill -9 at named steps of commits and deletes (${inTurn.length} in all)`,
  async run(rounds, onRound) {
    const ledger = createLedger()
    const clients = createClients(ledger)
    await using instances = await openInstances()
    // The first start prints the token, so it has no failpoint.
    const fresh = await instances.start()
    // A short run can kill the service in each round before it acknowledges an upload.
    await clients.raw(fresh)
    await fresh.server.stop()
    const first = rounds < inTurn.length ? ledger.random(inTurn.length) : 0
    for (let round = 0; round < rounds; round += 1) {
      const step = inTurn[(first + round) % inTurn.length]
      if (step === undefined) continue
      const nth = 1 + ((round + Math.floor(round / inTurn.length)) % 3)
      if (isReachedByStart(step)) await (await instances.start()).server.kill()
      const instance = await instances.start(withFailpoints({ step, nth, action: 'kill' }))
      await ledger.check(instance, 'new')
      await workInto(step, clients, instance)
      ledger.tally.rounds += 1
      onRound()
    }
    const last = await instances.start()
    await ledger.check(last)
    await clients.resumeAll(last)
    await ledger.check(last)
    await last.server.stop()
    await checkLeftovers(instances.directory, ledger)
    return verdictOf(ledger)
  },
}
