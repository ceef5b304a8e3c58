import { type Clients, createClients } from './clients.ts'
import { type Fault, verdictOf } from './fault.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { type Instance, openInstances } from './server-instances.ts'

/** One data directory with its servers, its clients and their ledger (see ledger.ts). */
export interface Stage {
  readonly directory: string
  readonly ledger: Ledger
  readonly clients: Clients
  /** The running server. */
  instance(): Instance
  /** Kills the server if it runs, starts another one, and checks all items. */
  restart(settings?: Readonly<Record<string, string>>): Promise<Instance>
}

/** A fault that is injected `rounds` times on one stage; afterwards the server is killed and checked once more. */
export function faultOnStage(
  title: string,
  round: (stage: Stage, nth: number) => Promise<void>,
  at?: { readonly directory: string; readonly settings?: Readonly<Record<string, string>> },
): Fault {
  return {
    title,
    async run(rounds, onRound) {
      const ledger = createLedger()
      await using instances = await openInstances(at?.directory)
      let instance = await instances.start(at?.settings)
      const stage: Stage = {
        directory: instances.directory,
        ledger,
        clients: createClients(ledger),
        instance: () => instance,
        async restart(settings) {
          await instance.server.kill()
          instance = await instances.start(settings ?? at?.settings)
          await ledger.check(instance)
          return instance
        },
      }
      for (let nth = 1; nth <= rounds; nth += 1) {
        await round(stage, nth)
        await ledger.check(instance)
        ledger.tally.rounds += 1
        onRound()
      }
      await stage.restart()
      await stage.clients.resumeAll(instance)
      await ledger.check(instance)
      return verdictOf(ledger)
    },
  }
}

/** Throws unless `holds`. For conditions beyond those of the ledger. */
export function must(what: string, holds: boolean): void {
  if (!holds) throw new Error(`not fulfilled: ${what}`)
}
