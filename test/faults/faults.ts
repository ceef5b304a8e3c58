import { fakeTime } from '../harness/moved-clock.ts'
import { canMount } from '../harness/small-disk.ts'
import { flippedByte, plantedBlobs } from './changed-blobs.ts'
import {
  failover,
  killedGateway,
  killedServers,
  killedWorker,
  restartedDatabase,
  slowGateway,
  terminatedBackends,
} from './cluster-faults.ts'
import { failObjectsAtCalls, fullBlobDiskOfObjects, fullCatalogDiskOfObjects } from './fail-objects.ts'
import { failingStatements } from './failing-database.ts'
import { failingCalls, failingSyncs } from './failing-disk.ts'
import type { Fault } from './fault.ts'
import { feedDuringDatabaseKills, feedDuringKills } from './feed-replay.ts'
import { fullBlobDisk, fullCatalogDisk } from './full-disks.ts'
import {
  killDuringDeletes,
  killDuringUploads,
  killDuringUploadsOnPostgres,
  killDuringUploadsOnPostgresAndS3,
  killDuringUploadsOnS3,
  killInARow,
} from './kill-at-random.ts'
import { killAtStart } from './kill-at-start.ts'
import { killAtSteps } from './kill-at-steps.ts'
import {
  killDuringObjects,
  killDuringObjectsOnPostgres,
  killDuringObjectsOnPostgresAndS3,
  killDuringObjectsOnS3,
  killOfTwoDuringObjects,
} from './kill-objects.ts'
import { killObjectsAtCalls, killObjectsAtSteps } from './kill-objects-at-steps.ts'
import { killSyncs, killSyncsOnPostgresAndS3 } from './kill-syncs.ts'
import { killDuringBuckets, killDuringBucketsOnPostgres, killWorkersDuringBuckets } from './kill-tenants.ts'
import { killUpkeep } from './kill-upkeep.ts'
import { killDuringDeliveries, killDuringDeliveriesOnPostgres } from './kill-webhooks.ts'
import { killWorkers } from './kill-workers.ts'
import { clockMoves } from './moved-clock.ts'
import { clientGone, sameKey } from './same-key.ts'
import { secondServer } from './second-server.ts'
import { stopBySignal } from './stop-by-signal.ts'
import { canTrace } from './system-calls.ts'

export interface FaultRow extends Fault {
  /** The rules of docs/interface.md that it tests. */
  readonly rules: string
  /** Rounds in the form that `npm run test:long` runs. */
  readonly short: number
  /** Rounds in the long form, for each hundred rounds of random kills. */
  readonly perHundred: number
  /** Whether this machine can inject it. */
  readonly isPossible: () => boolean | Promise<boolean>
}

const row = (
  rules: string,
  fault: Fault,
  short: number,
  perHundred: number,
  isPossible: FaultRow['isPossible'] = () => true,
): FaultRow => ({ ...fault, rules, short, perHundred, isPossible })

/** Processes killed at random moments. */
export const randomKills: readonly FaultRow[] = [
  row('U2, R6, M2, US2', killDuringUploads, 3, 100),
  row('OK2, OK3, OK4, MU1, MU3, MU8, MU9', killDuringObjects, 3, 100),
  row('FE1, FE2, FE5', feedDuringKills, 3, 50),
  row('FE1, FE2, FE5', feedDuringDatabaseKills, 1, 50),
  row('BK5, BK7, BK10, BK11', killDuringBuckets, 3, 100),
  row('BK5, BK7, BK10, BK11', killDuringBucketsOnPostgres, 1, 50),
  row('BK5, BK7, BK10, BK11', killWorkersDuringBuckets, 1, 50),
]

/** Processes killed at chosen steps. */
export const kills: readonly FaultRow[] = [
  row('U2, R6, M2', killAtSteps, 2, 60),
  row('OK2, MU1, MU8', killObjectsAtSteps, 2, 60),
  row('OK2, MU1, MU8', killObjectsAtCalls, 2, 100),
  row('M2, R6', killAtStart, 1, 5),
  row('S8, US2, US8', killInARow, 2, 100),
  row('M2', killDuringDeletes, 1, 25),
  row('F7, F8', killUpkeep, 2, 100),
  row('O11', killWorkers, 1, 25),
  row('WH5, WH7', killDuringDeliveries, 1, 25),
  row('WH5, WH7', killDuringDeliveriesOnPostgres, 1, 25),
  row('I2, K17', killSyncs, 5, 50),
]

/** Faults of disks, clocks, signals and clients. */
export const otherFaults: readonly FaultRow[] = [
  row('U2, R6', fullBlobDisk, 1, 5, canMount),
  row('U2, R6', fullCatalogDisk, 1, 5, canMount),
  row('U2, R6', failingCalls, 1, 5),
  row('OK2, MU1, MU8, SP7', failObjectsAtCalls, 2, 100),
  row('OK2, MU1, MU8, SP7', fullBlobDiskOfObjects, 1, 5, canMount),
  row('OK2, MU1, MU8, SP7', fullCatalogDiskOfObjects, 1, 5, canMount),
  row('U2, R6', failingSyncs, 1, 5, canTrace),
  row('S10', failingStatements, 1, 50),
  row('L10, A9, R8', clockMoves, 2, 5, () => fakeTime() !== null),
  row('O5, R6', stopBySignal, 1, 5),
  row('O6', secondServer, 1, 3),
  row('F3', flippedByte, 1, 5),
  row('F1, F2', plantedBlobs, 1, 5),
  row('I2', sameKey, 1, 25),
  row('I2', clientGone, 1, 25),
]

/** Faults of several servers that share PostgreSQL and an S3 store. */
export const clusterFaults: readonly FaultRow[] = [
  row('U2, R6', restartedDatabase, 1, 25),
  row('U2, R6', terminatedBackends, 1, 25),
  row('U2, R6', failover, 1, 25),
  row('U2, R6', killedGateway, 1, 25),
  row('U2, R6', slowGateway, 1, 25),
  row('U2, R6, M2', killedServers, 1, 25),
  row('O11', killedWorker, 1, 25),
  row('I2, K17', killSyncsOnPostgresAndS3, 5, 25),
  row('U2, R6, M2, US2', killDuringUploadsOnPostgres, 3, 100),
  row('U2, R6, M2', killDuringUploadsOnS3, 3, 100),
  row('U2, R6, M2', killDuringUploadsOnPostgresAndS3, 3, 100),
  row('OK2, OK3, MU1, MU8', killDuringObjectsOnPostgres, 3, 100),
  row('OK2, OK3, MU1, MU8', killDuringObjectsOnS3, 3, 100),
  row('OK2, OK3, MU1, MU8', killDuringObjectsOnPostgresAndS3, 3, 100),
  row('OK2, OK3, MU1, MU8, MU9', killOfTwoDuringObjects, 3, 100),
]
