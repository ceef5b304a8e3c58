import { type Clients, createClients } from './clients.ts'
import { type Fault, verdictOf } from './fault.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { type Life, openLives } from './lives.ts'

/** One data directory with its servers, its clients and their ledger. */
export interface Stage {
  readonly directory: string
  readonly ledger: Ledger
  readonly clients: Clients
  /** The server that runs now. */
  life(): Life
  /** Kills it if it still runs, starts another one, and looks at everything. */
  restart(settings?: Readonly<Record<string, string>>): Promise<Life>
}

/** A fault that is done `rounds` times to one stage, which then must come through a kill. */
export function faultOnStage(
  title: string,
  round: (stage: Stage, nth: number) => Promise<void>,
  at?: { readonly directory: string; readonly settings?: Readonly<Record<string, string>> },
): Fault {
  return {
    title,
    async run(rounds, onRound) {
      const ledger = createLedger()
      await using lives = await openLives(at?.directory)
      let life = await lives.start(at?.settings)
      const stage: Stage = {
        directory: lives.directory,
        ledger,
        clients: createClients(ledger),
        life: () => life,
        async restart(settings) {
          await life.server.kill()
          life = await lives.start(settings ?? at?.settings)
          await ledger.check(life)
          return life
        },
      }
      for (let nth = 1; nth <= rounds; nth += 1) {
        await round(stage, nth)
        await ledger.check(life)
        ledger.tally.rounds += 1
        onRound()
      }
      await stage.restart()
      await stage.clients.resumeAll(life)
      await ledger.check(life)
      return verdictOf(ledger)
    },
  }
}

/** Throws unless it is so: what a fault must do beside keeping the promise. */
export function must(what: string, holds: boolean): void {
  if (!holds) throw new Error(`it must be that ${what}`)
}
