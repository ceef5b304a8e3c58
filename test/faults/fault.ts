import type { Ledger, Tally } from './ledger.ts'

/** What a fault did to the promise. */
export interface Verdict extends Tally {
  /** In words what went against the promise. */
  readonly faults: readonly string[]
}

/** One row of the report: a fault that is done to real servers, as often as asked. */
export interface Fault {
  readonly title: string
  /** `onRound` hears of every round's end. */
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
