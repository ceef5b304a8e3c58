import { setTimeout } from 'node:timers/promises'
import { checkLeftovers } from './check-leftovers.ts'
import { type Clients, createClients } from './clients.ts'
import { type Fault, verdictOf } from './fault.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { type Life, openLives } from './lives.ts'

/** Rounds on one data directory; then everything in it is gone through once more, and a new one is begun. */
const roundsEach = 10

/** Milliseconds of work at the most before the kill. */
const longest = 400

const atOnce = 6

async function onOneDirectory(
  rounds: number,
  onRound: () => void,
  work: (clients: Clients, life: Life) => Promise<void>,
): Promise<Ledger> {
  await using lives = await openLives()
  const ledger = createLedger()
  const clients = createClients(ledger)
  let life = await lives.start()
  for (let round = 0; round < rounds; round += 1) {
    const working = work(clients, life)
    await setTimeout(Math.random() * longest)
    await life.server.kill()
    await working
    life = await lives.start()
    await ledger.check(life)
    ledger.tally.rounds += 1
    onRound()
  }
  await clients.resumeAll(life)
  await ledger.check(life)
  await checkLeftovers(lives.directory, ledger)
  return ledger
}

const killing =
  (work: (clients: Clients, life: Life) => Promise<void>): Fault['run'] =>
  async (rounds, onRound) => {
    const ledgers: Ledger[] = []
    for (let done = 0; done < rounds; done += roundsEach)
      ledgers.push(await onOneDirectory(Math.min(roundsEach, rounds - done), onRound, work))
    return verdictOf(...ledgers)
  }

export const killDuringUploads: Fault = {
  title: 'kill -9 at random during uploads, resumptions and deletes',
  run: killing((clients, life) => clients.workUntilGone(life, atOnce)),
}

export const killDuringDeletes: Fault = {
  title: 'kill -9 in the middle of deletes',
  run: killing(async (clients, life) => {
    // Enough to delete until the kill; it may come before they are all there.
    await Promise.allSettled(Array.from({ length: 20 }, () => clients.raw(life)))
    await clients.removeUntilGone(life, atOnce)
  }),
}
