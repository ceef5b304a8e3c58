import { LRUCache } from 'lru-cache'

/** Buckets whose last turns are kept. */
const maxTurns = 10_000

/** A fair queue: buckets take turns, however many jobs each has. */
export interface PictureQueue<Job extends { readonly bucket: string }> {
  readonly length: number
  /** Adds a job; with `first`, before the other jobs of its bucket. */
  add(job: Job, first?: boolean): void
  /**
   * If more than `bound + excess` jobs wait, removes and returns the last job of the bucket with the most jobs; of several, that of `added`
   * if it is one of them.
   */
  overflow(added: Job, excess?: number): Job | null
  /** Removes and returns the next job. Buckets with fewer than `share` running jobs go first, then those whose last turn was the earliest. */
  take(running: (bucket: string) => number, share: number): Job | null
  /** Returns false if the job is not in the queue. */
  remove(job: Job): boolean
  /** Buckets with waiting jobs. */
  buckets(): readonly string[]
  clear(): Job[]
}

/** `bound`: the number of jobs above which `overflow` removes one. */
export function createPictureQueue<Job extends { readonly bucket: string }>(
  bound: number,
): PictureQueue<Job> {
  /** No list is empty. */
  const waiting = new Map<string, Job[]>()
  /** The last turn of each bucket, also of those without waiting jobs: otherwise such a bucket would have the next turn too. */
  // With `max` it would allocate all places at the start.
  const turns = new LRUCache<string, number>({ maxSize: maxTurns, sizeCalculation: () => 1 })
  let turn = 0
  /** The buckets with each number of jobs. No set is empty. */
  const bySize = new Map<number, Set<string>>()
  /** The number of jobs of the bucket with the most. */
  let largest = 0
  let length = 0

  /** Records that a bucket has one job more or less. */
  function resize(bucket: string, from: number, to: number): void {
    const former = bySize.get(from)
    former?.delete(bucket)
    if (former?.size === 0) bySize.delete(from)
    if (to > 0) bySize.set(to, (bySize.get(to) ?? new Set()).add(bucket))
    if (to > largest || !bySize.has(largest)) largest = to
    length += to - from
  }

  function drop(bucket: string, jobs: Job[], at: number): Job | undefined {
    const [job] = jobs.splice(at, 1)
    resize(bucket, jobs.length + 1, jobs.length)
    if (jobs.length === 0) waiting.delete(bucket)
    return job
  }

  function nextBucket(isPreferred: (bucket: string) => boolean): string | undefined {
    let next: { bucket: string; isPreferred: boolean; turn: number } | undefined
    for (const bucket of waiting.keys()) {
      const other = { bucket, isPreferred: isPreferred(bucket), turn: turns.peek(bucket) ?? 0 }
      const isSooner = next?.isPreferred === other.isPreferred ? other.turn < next.turn : other.isPreferred
      if (next === undefined || isSooner) next = other
    }
    return next?.bucket
  }

  return {
    get length() {
      return length
    },
    add(job, first = false) {
      const jobs = waiting.get(job.bucket) ?? []
      if (first) jobs.unshift(job)
      else jobs.push(job)
      waiting.set(job.bucket, jobs)
      resize(job.bucket, jobs.length - 1, jobs.length)
    },
    overflow({ bucket: own }, excess = 0) {
      if (length <= bound + excess) return null
      const most = bySize.get(largest) ?? new Set()
      const [first = own] = most
      const bucket = most.has(own) ? own : first
      return drop(bucket, waiting.get(bucket) ?? [], largest - 1) ?? null
    },
    take(running, share) {
      const bucket = nextBucket((bucket) => running(bucket) < share)
      if (bucket === undefined) return null
      const jobs = waiting.get(bucket) ?? []
      turn += 1
      turns.set(bucket, turn)
      return drop(bucket, jobs, 0) ?? null
    },
    remove(job) {
      const jobs = waiting.get(job.bucket) ?? []
      const at = jobs.indexOf(job)
      if (at < 0) return false
      drop(job.bucket, jobs, at)
      return true
    },
    buckets: () => [...waiting.keys()],
    clear() {
      const all = [...waiting.values()].flat()
      waiting.clear()
      bySize.clear()
      largest = 0
      length = 0
      return all
    },
  }
}

/** Takes a place for a bucket, and resolves with a function that gives it back. Throws PictureWorkersBusy after the timeout. */
export type TakePlace = (bucket: string) => Promise<() => void>

/** Places that buckets take in turns: `all` together, `each` at the most. */
export function createPlaces(limits: {
  readonly all: number
  readonly each: number
  /** Milliseconds. */
  readonly timeout: number
}): TakePlace {
  const waiting = createPictureQueue<{ readonly bucket: string; readonly begin: () => void }>(
    Number.POSITIVE_INFINITY,
  )
  const taken = new Map<string, number>()
  const takenBy = (bucket: string) => taken.get(bucket) ?? 0
  let free = limits.all

  function count(bucket: string, change: 1 | -1): void {
    free -= change
    if (takenBy(bucket) + change === 0) taken.delete(bucket)
    else taken.set(bucket, takenBy(bucket) + change)
  }

  function next(): void {
    while (free > 0 && waiting.buckets().some((bucket) => takenBy(bucket) < limits.each))
      waiting.take(takenBy, limits.each)?.begin()
  }

  return (bucket) =>
    new Promise((resolve, reject) => {
      const giveBack = () => {
        count(bucket, -1)
        next()
      }
      const place = {
        bucket,
        begin() {
          clearTimeout(timer)
          count(bucket, 1)
          resolve(giveBack)
        },
      }
      const timer = setTimeout(() => {
        waiting.remove(place)
        reject(new PictureWorkersBusy('no place is free'))
      }, limits.timeout).unref()
      waiting.add(place)
      next()
    })
}

/** A worker ended during the task: the task exceeded its time or memory limit, or crashed the decoder. */
export class PictureOverLimits extends Error {
  override readonly name = 'PictureOverLimits'
  /** Whether it was the time limit, which a slow disk or store can cause too. */
  readonly isTimeout: boolean
  constructor(message: string, { isTimeout = false } = {}) {
    super(message)
    this.isTimeout = isTimeout
  }
}

/** The queue is full, the queue timeout expired, or the workers are closed; no process can be started, if it has a cause. */
export class PictureWorkersBusy extends Error {
  override readonly name: string = 'PictureWorkersBusy'
}

/** A variant is not rendered yet, and the request waits no longer. The render continues. */
export class VariantPending extends Error {
  override readonly name = 'VariantPending'
}

/** A task of `runAhead` has given way to tasks of `run`, or found no free process. */
export class PictureTaskPreempted extends PictureWorkersBusy {
  override readonly name = 'PictureTaskPreempted'
}
