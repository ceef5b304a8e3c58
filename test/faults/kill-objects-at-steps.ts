import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../harness/until.ts'
import { checkLeftovers, rowsIn } from './check-leftovers.ts'
import { type Fault, verdictOf } from './fault.ts'
import { checkScene, objectSettings, openScene, sendEach, workOn } from './kill-objects.ts'
import { createLedger } from './ledger.ts'
import { objectClients } from './objects/object-clients.ts'
import { withFailpoints } from './preload.ts'
import { type Instance, openInstances } from './server-instances.ts'
import { readReached, type StepName, stepsOf } from './steps.ts'

/** Requests of the S3 protocol reach all of them. */
const reached: readonly StepName[] = [...stepsOf('object'), ...stepsOf('upload'), ...stepsOf('removal')]

const hasEnded = ({ server: { process } }: Instance) =>
  process.signalCode !== null || process.exitCode !== null

/** Each round kills at one step, at its first, second or third occurrence. A run of fewer rounds than steps begins at a random one. */
export const killObjectsAtSteps: Fault = {
  title: `kill -9 at named steps of requests of S3 (${reached.length} in all)`,
  async run(rounds, onRound) {
    const ledger = createLedger()
    await using instances = await openInstances()
    let instance = await instances.start(objectSettings)
    const { scene } = await openScene(instance, ledger)
    await objectClients(scene).put(instance)
    const first = rounds < reached.length ? ledger.random(reached.length) : 0
    for (let round = 0; round < rounds; round += 1) {
      const step = reached[(first + round) % reached.length] ?? 'key bound'
      const nth = 1 + ((round + Math.floor(round / reached.length)) % 3)
      // What is left to be removed is removed by this server, so that the next one is not killed at its start.
      await until(
        'the end of removals',
        async () => (await rowsIn(instances.directory, 'SELECT 1 FROM tombstones')).length === 0,
      )
      await instance.server.stop()
      const failing = await instances.start({
        ...objectSettings,
        ...withFailpoints({ step, nth, action: 'kill' }),
      })
      const exited = once(failing.server.process, 'exit')
      await workOn(
        scene,
        () => [failing],
        () => hasEnded(failing),
        3,
      )
      await exited
      if (readReached(instances.directory).join() !== step)
        throw new Error(
          `the service ended otherwise than at '${step}': ${failing.server.stderr().slice(-2_000)}`,
        )
      instance = await instances.start(objectSettings)
      await checkScene(scene, instance, null)
      ledger.tally.rounds += 1
      onRound()
    }
    await instance.server.stop()
    await checkLeftovers(instances.directory, ledger)
    return verdictOf(ledger)
  },
}

/** Each round kills before the next call that changes files or commits, until requests of each kind are answered. Then it begins again. */
export const killObjectsAtCalls: Fault = {
  title: 'kill -9 before each call that changes files or commits, during requests of S3',
  async run(rounds, onRound) {
    const ledger = createLedger()
    await using instances = await openInstances()
    let instance = await instances.start(objectSettings)
    const { scene } = await openScene(instance, ledger)
    await objectClients(scene).put(instance)
    const armed = join(instances.directory, 'failpoints-armed')
    let nth = rounds < usualCalls ? 1 + ledger.random(usualCalls) : 1
    for (let round = 0; round < rounds; round += 1) {
      await instance.server.stop()
      const failpoint = { step: 'any call', nth, from: armed, action: 'kill' } as const
      const failing = await instances.start({ ...objectSettings, ...withFailpoints(failpoint) })
      writeFileSync(armed, '')
      const isAnswered = await sendEach(scene, failing).then(
        () => true,
        () => false,
      )
      if (isAnswered) await failing.server.kill()
      else await until('the kill', () => hasEnded(failing))
      rmSync(armed)
      nth = isAnswered ? 1 : nth + 1
      instance = await instances.start(objectSettings)
      await checkScene(scene, instance, null)
      ledger.tally.rounds += 1
      onRound()
    }
    await instance.server.stop()
    await checkLeftovers(instances.directory, ledger)
    return verdictOf(ledger)
  },
}

/** Of requests of each kind, at least. */
const usualCalls = 60
