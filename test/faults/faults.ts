import { flippedByte, plantedBlobs } from './changed-blobs.ts'
import { failingCalls, failingSyncs } from './failing-disk.ts'
import type { Fault } from './fault.ts'
import { canMount, fullBlobDisk, fullCatalogDisk } from './full-disks.ts'
import { killDuringDeletes, killDuringUploads } from './kill-at-random.ts'
import { killAtSteps } from './kill-at-steps.ts'
import { fakeTime, movedClock } from './moved-clock.ts'
import { clientGone, sameKey } from './same-key.ts'
import { secondServer } from './second-server.ts'
import { stopBySignal } from './stop-by-signal.ts'
import { canTrace } from './system-calls.ts'

export interface FaultRow extends Fault {
  /** Rounds in the form that `npm test` runs. */
  readonly short: number
  /** Rounds in the long form, for each hundred rounds of random kills. */
  readonly perHundred: number
  /** Whether this machine lets it be done. */
  readonly isPossible: () => boolean | Promise<boolean>
}

const row = (
  fault: Fault,
  short: number,
  perHundred: number,
  isPossible: FaultRow['isPossible'] = () => true,
): FaultRow => ({ ...fault, short, perHundred, isPossible })

/** Processes that are killed. */
export const kills: readonly FaultRow[] = [
  row(killDuringUploads, 20, 100),
  row(killAtSteps, 1, 2),
  row(killDuringDeletes, 4, 25),
]

/** Disks, clocks, signals and clients that do what they should not. */
export const otherFaults: readonly FaultRow[] = [
  row(fullBlobDisk, 1, 5, canMount),
  row(fullCatalogDisk, 1, 5, canMount),
  row(failingCalls, 1, 5),
  row(failingSyncs, 1, 5, canTrace),
  row(movedClock, 2, 5, () => fakeTime() !== null),
  row(stopBySignal, 1, 5),
  row(secondServer, 1, 3),
  row(flippedByte, 1, 5),
  row(plantedBlobs, 1, 5),
  row(sameKey, 2, 25),
  row(clientGone, 5, 25),
]
