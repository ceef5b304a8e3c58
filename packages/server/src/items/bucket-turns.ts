import { isOutage } from '../core/faults.ts'
import { runInSteps, throwFailures } from '../core/tasks.ts'
import type { BucketId } from '../storage/catalog/records.ts'

/** Milliseconds of a turn. */
export const turnTime = 2_000

/** Buckets that have turns at the same time. */
const parallelBuckets = 4

/** Milliseconds from a turn that has failed, or has left nothing, to the next one of its bucket in the same run. With the interval of the runs, ten minutes. */
const turnInterval = 300_000

/** Work for many buckets, which do not depend on each other. */
export interface BucketWork {
  /** The buckets that need a turn. */
  readonly list: () => Promise<readonly BucketId[]>
  /** Works for one bucket, for about `turnTime`. Returns whether work is left. */
  readonly takeTurn: (bucketId: BucketId) => Promise<boolean>
  readonly isStopping: () => boolean
  /** Receives each failure that concerns one bucket. */
  readonly onFailure: (bucketId: BucketId, error: unknown) => void
}

/** A run of the work. */
interface Run extends BucketWork {
  /** In the order of their turns. */
  readonly waiting: Set<BucketId>
  readonly working: Set<BucketId>
  /** The times of performance.now() before which buckets have no further turn. */
  readonly nextTurns: Map<BucketId, number>
  hasFailed: boolean
}

/**
 * Gives turns to the buckets of the list, until none of them needs one. Reads the list again when each has had its turn, so that buckets which
 * are added during a long run wait for a round of turns only. If the list cannot be read, or at an outage (core/faults.ts), rejects as soon as
 * the turns in progress have ended.
 */
export async function workInTurns(work: BucketWork): Promise<void> {
  const run: Run = {
    ...work,
    waiting: new Set(),
    working: new Set(),
    nextTurns: new Map(),
    hasFailed: false,
  }
  const ends = await Promise.allSettled(Array.from({ length: parallelBuckets }, () => takeTurns(run)))
  throwFailures(
    ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : [])),
    'a turn of a bucket',
  )
}

async function takeTurns(run: Run): Promise<void> {
  try {
    while (!run.hasFailed && !run.isStopping()) {
      if (run.waiting.size === 0) await listAgain(run)
      const [bucketId] = run.waiting
      if (bucketId === undefined || run.hasFailed || run.isStopping()) return
      await takeTurn(run, bucketId)
    }
  } catch (error) {
    run.hasFailed = true
    throw error
  }
}

async function listAgain({ list, waiting, working, nextTurns }: Run): Promise<void> {
  for (const bucketId of await list())
    if (!working.has(bucketId) && performance.now() >= (nextTurns.get(bucketId) ?? 0)) waiting.add(bucketId)
}

async function takeTurn(run: Run, bucketId: BucketId): Promise<void> {
  run.waiting.delete(bucketId)
  run.working.add(bucketId)
  let isLeft = false
  try {
    isLeft = await run.takeTurn(bucketId)
  } catch (error) {
    if (isOutage(error)) throw error
    run.onFailure(bucketId, error)
  } finally {
    run.working.delete(bucketId)
  }
  if (!isLeft) run.nextTurns.set(bucketId, performance.now() + turnInterval)
}

/** As runInSteps, for `time` milliseconds. Returns whether steps are left. */
export async function runTurn(
  step: () => Promise<boolean>,
  time: number,
  isStopping: () => boolean,
): Promise<boolean> {
  const end = performance.now() + time
  let isLeft = true
  await runInSteps(async () => {
    isLeft = await step()
    return isLeft && performance.now() < end
  }, isStopping)
  return isLeft
}
