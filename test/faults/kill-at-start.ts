import { createClients } from './clients.ts'
import { type Fault, verdictOf } from './fault.ts'
import { workInto } from './kill-at-steps.ts'
import { createLedger } from './ledger.ts'
import { openLives } from './lives.ts'
import { withFailpoints } from './preload.ts'
import { must } from './stage.ts'
import { readReached, type StepName } from './steps.ts'

/** Where a server is killed, and where the next one, which clears up after it. */
const pairs: readonly (readonly [StepName, StepName])[] = [
  ['row removed', 'before the unlink'],
  ['last piece renamed', 'last piece taken back'],
  ['row removed', 'before the tombstone goes'],
  ['before the upload is finished', 'last piece taken back'],
  ['row removed', 'unlinked'],
]

export const killAtStart: Fault = {
  title: 'kill -9 while a start clears up after a kill -9',
  async run(rounds, onRound) {
    const ledger = createLedger()
    const clients = createClients(ledger)
    await using lives = await openLives()
    await (await lives.start()).server.stop()
    for (let round = 0; round < rounds; round += 1) {
      const [first, second] = pairs[round % pairs.length] ?? []
      if (!first || !second) continue
      const life = await lives.start(withFailpoints({ step: first, nth: 2, action: 'kill' }))
      await workInto(first, clients, life)
      const start = lives.start(withFailpoints({ step: second, nth: 1, action: 'kill' }))
      const died = await start.then(
        () => false,
        () => true,
      )
      must(`the next start dies at '${second}'`, died && readReached(lives.directory).join() === second)
      const last = await lives.start()
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
