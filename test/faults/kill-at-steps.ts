import { once } from 'node:events'
import { until } from '../harness/until.ts'
import { checkLeftovers } from './check-leftovers.ts'
import { type Clients, createClients } from './clients.ts'
import { type Fault, verdictOf } from './fault.ts'
import { createLedger } from './ledger.ts'
import { type Life, openLives } from './lives.ts'
import { withFailpoints } from './preload.ts'
import { readReached, type StepName, steps, stepsOf } from './steps.ts'

const atOnce = 3

/** Works until the failpoint has killed the service. */
export async function workInto(step: StepName, clients: Clients, life: Life): Promise<void> {
  const { process, data } = life.server
  const exited = once(process, 'exit')
  const { by } = steps[step]
  if (by === 'upload') void clients.uploadUntilGone(life, atOnce)
  if (by === 'pieces') void clients.piecesUntilGone(life, atOnce)
  if (by === 'removal') void clients.removeUntilGone(life, atOnce)
  await until(`the failpoint '${step}'`, () => process.signalCode ?? process.exitCode, 60_000)
  await exited
  if (process.signalCode !== 'SIGKILL' || readReached(data).join() !== step)
    throw new Error(`the service ended otherwise than at '${step}'`)
}

/** A removal that was killed is finished by the next start, which must not die of it: an upload's step comes between. */
const inTurn: readonly StepName[] = stepsOf('removal')
  .flatMap((step, index) => [step, ...stepsOf('upload').slice(index, index + 1)])
  .concat(stepsOf('upload').slice(stepsOf('removal').length), stepsOf('pieces'))

/** A start that clears up after an upload removes bytes and syncs their directories, and must not die of it. */
const isReachedByStart = (step: StepName): boolean =>
  steps[step].by === 'removal' || step === 'before the directory is synced' || step === 'directory synced'

/** Every named step in turn; each round goes through all of them, at their first, second or third time. */
export const killAtSteps: Fault = {
  title: `kill -9 at each of ${inTurn.length} steps of commits and deletes`,
  async run(rounds, onRound) {
    const ledger = createLedger()
    const clients = createClients(ledger)
    await using lives = await openLives()
    // The first start prints the token, with nothing in the way.
    await (await lives.start()).server.stop()
    for (let round = 0; round < rounds; round += 1) {
      for (const [index, step] of inTurn.entries()) {
        const nth = 1 + ((index + round) % 3)
        if (isReachedByStart(step)) await (await lives.start()).server.kill()
        const life = await lives.start(withFailpoints({ step, nth, action: 'kill' }))
        await ledger.check(life)
        await workInto(step, clients, life)
        ledger.tally.rounds += 1
        onRound()
      }
    }
    const last = await lives.start()
    await ledger.check(last)
    await clients.resumeAll(last)
    await ledger.check(last)
    await last.server.stop()
    await checkLeftovers(lives.directory, ledger)
    return verdictOf(ledger)
  },
}
