import { onDisk } from '../harness/upload.ts'
import { createClients } from './clients.ts'
import { type Fault, verdictOf } from './fault.ts'
import { workInto } from './kill-at-steps.ts'
import { createLedger } from './ledger.ts'
import { withFailpoints } from './preload.ts'
import { openInstances } from './server-instances.ts'
import { must } from './stage.ts'
import { readReached, type StepName } from './steps.ts'

/** The step at which a server is killed, and the step at which the next one is killed during its recovery. */
const pairs: readonly (readonly [StepName, StepName])[] = [
  ['row removed', 'before the unlink'],
  ['last chunk renamed', 'last chunk moved back'],
  ['row removed', 'before the tombstone is removed'],
  ['before the upload is finished', 'last chunk moved back'],
  ['row removed', 'unlinked'],
  ['renamed', 'before the intents are removed'],
]

export const killAtStart: Fault = {
  title: 'kill -9 during the recovery from a kill -9',
  async run(rounds, onRound) {
    const ledger = createLedger()
    const clients = createClients(ledger)
    await using instances = await openInstances()
    await (await instances.start()).server.stop()
    for (let round = 0; round < rounds; round += 1) {
      const [first, second] = pairs[round % pairs.length] ?? []
      if (!first || !second) continue
      const instance = await instances.start({
        ...withFailpoints({ step: first, nth: 2, action: 'kill' }),
        ...onDisk,
      })
      await workInto(first, clients, instance)
      const start = instances.start(withFailpoints({ step: second, nth: 1, action: 'kill' }))
      const died = await start.then(
        () => false,
        () => true,
      )
      must(`the next start dies at '${second}'`, died && readReached(instances.directory).join() === second)
      const last = await instances.start()
      await ledger.check(last)
      await clients.resumeAll(last)
      await ledger.check(last)
      await last.server.kill()
      ledger.tally.rounds += 1
      onRound()
    }
    return verdictOf(ledger)
  },
}
