import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
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

interface Killed {
  /** Done whole before. */
  readonly prepare?: (clients: Clients, life: Life) => Promise<unknown>
  /** Goes on until the kill. */
  readonly work: (clients: Clients, life: Life) => Promise<void>
}

async function onOneDirectory(
  rounds: number,
  onRound: () => void,
  { prepare, work }: Killed,
): Promise<Ledger> {
  await using lives = await openLives()
  const ledger = createLedger()
  const clients = createClients(ledger)
  let life = await lives.start()
  for (let round = 0; round < rounds; round += 1) {
    await prepare?.(clients, life)
    const working = work(clients, life)
    await setTimeout(ledger.random(longest))
    await life.server.kill()
    await working
    life = await lives.start()
    await checkCleared(lives.directory, ledger)
    await ledger.check(life)
    ledger.tally.rounds += 1
    onRound()
  }
  await clients.resumeAll(life)
  await ledger.check(life)
  await life.server.stop()
  await checkLeftovers(lives.directory, ledger)
  return ledger
}

/** A start removes what the crash before it left. */
async function checkCleared(directory: string, ledger: Ledger): Promise<void> {
  for (const place of ['tmp', 'pending'])
    for (const name of await readdir(join(directory, place)))
      ledger.fault('halfVisible', `${place}/${name} is left after a start`)
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
  run: killing({ work: (clients, life) => clients.workUntilGone(life, atOnce) }),
}

export const killInARow: Fault = {
  title: 'crashes in a row on one data directory, under load',
  run: killing({ work: (clients, life) => clients.workUntilGone(life, atOnce) }, Number.POSITIVE_INFINITY),
}

export const killDuringDeletes: Fault = {
  title: 'kill -9 in the middle of deletes',
  run: killing({
    // Enough to delete until the kill.
    prepare: (clients, life) => Promise.all(Array.from({ length: 20 }, () => clients.raw(life))),
    work: (clients, life) => clients.removeUntilGone(life, atOnce),
  }),
}
