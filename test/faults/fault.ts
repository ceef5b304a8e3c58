import type { Ledger, Tally } from './ledger.ts'

/** The result of a fault. */
export interface Verdict extends Tally {
  /** Each violation in words. */
  readonly faults: readonly string[]
}

/** One row of the report: a fault that is injected into real servers. */
export interface Fault {
  readonly title: string
  /** `onRound` is called after every round. */
  run(rounds: number, onRound: () => void): Promise<Verdict>
}

export const verdictOf = (...ledgers: readonly Pick<Ledger, 'tally' | 'faults'>[]): Verdict => {
  const sum = (count: (tally: Tally) => number) =>
    ledgers.reduce((total, { tally }) => total + count(tally), 0)
  return {
    rounds: sum(({ rounds }) => rounds),
    acknowledged: sum(({ acknowledged }) => acknowledged),
    lost: sum(({ lost }) => lost),
    halfVisible: sum(({ halfVisible }) => halfVisible),
    returned: sum(({ returned }) => returned),
    faults: ledgers.flatMap(({ faults }) => faults),
  }
}

/** The same fault with servers on other engines than SQLite and the disk. `uses` are those of harness/database.ts. */
export const onEngines = (fault: Fault, engines: string, ...uses: readonly (() => () => void)[]): Fault => ({
  title: `${fault.title}, on ${engines}`,
  async run(rounds, onRound) {
    const restore = uses.map((use) => use())
    try {
      return await fault.run(rounds, onRound)
    } finally {
      for (const undo of restore) undo()
    }
  },
})
