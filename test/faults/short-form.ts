import { expect, test } from 'vitest'
import type { FaultRow } from './faults.ts'

/** Milliseconds. Some faults start thirty servers, which takes minutes on a busy machine. */
const timeout = 1_200_000

/** The short form of each fault as a test: no acknowledged item is lost, none is half stored, no deleted one returns. */
export async function testFaults(faults: readonly FaultRow[]): Promise<void> {
  for (const fault of faults) {
    const isSkipped = process.env['CI'] === undefined && !(await fault.isPossible())
    test.skipIf(isSkipped)(`${fault.rules} ${fault.title}`, { timeout }, async () => {
      const verdict = await fault.run(fault.short, () => undefined)
      expect(verdict).toMatchObject({ faults: [], lost: 0, halfVisible: 0, returned: 0 })
      expect(verdict.rounds).toBeGreaterThanOrEqual(fault.short)
      expect(verdict.acknowledged).toBeGreaterThan(0)
    })
  }
}
