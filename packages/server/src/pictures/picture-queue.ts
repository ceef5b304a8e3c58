import { LRUCache } from 'lru-cache'

/** Buckets whose last turns are kept. */
const maxTurns = 10_000

/** A fair queue: buckets take turns, however many jobs each has. */
export class PictureQueue<Job extends { readonly bucket: string }> {
  readonly #bound: number
  /** The jobs of each bucket. No list is empty. */
  readonly #waiting = new Map<string, Job[]>()
  /** The last turn of each bucket, also of those without waiting jobs: otherwise such a bucket would have the next turn too. */
  // With `max` it would allocate all places at the start.
  readonly #turns = new LRUCache<string, number>({ maxSize: maxTurns, sizeCalculation: () => 1 })
  #turn = 0
  /** The buckets with each number of jobs. No set is empty. */
  readonly #bySize = new Map<number, Set<string>>()
  /** The number of jobs of the bucket with the most. */
  #largest = 0
  #length = 0

  /** `bound`: the number of jobs above which `overflow` removes one. */
  constructor(bound: number) {
    this.#bound = bound
  }

  get length(): number {
    return this.#length
  }

  /** Buckets with waiting jobs. */
  buckets(): readonly string[] {
    return [...this.#waiting.keys()]
  }

  /** Adds a job; with `first`, before the other jobs of its bucket. */
  add(job: Job, first = false): void {
    const jobs = this.#waiting.get(job.bucket) ?? []
    if (first) jobs.unshift(job)
    else jobs.push(job)
    this.#waiting.set(job.bucket, jobs)
    this.#resize(job.bucket, jobs.length - 1, jobs.length)
  }

  /**
   * If more than `bound + excess` jobs wait, removes and returns the last job of the bucket with the most jobs; of several, that of `added`
   * if it is one of them.
   */
  overflow({ bucket: own }: Job, excess = 0): Job | null {
    if (this.#length <= this.#bound + excess) return null
    const most = this.#bySize.get(this.#largest) ?? new Set()
    const [first = own] = most
    const bucket = most.has(own) ? own : first
    return this.#drop(bucket, this.#waiting.get(bucket) ?? [], this.#largest - 1) ?? null
  }

  /** Removes and returns the next job. Buckets with fewer than `share` running jobs go first, then those whose last turn was the earliest. */
  take(running: (bucket: string) => number, share: number): Job | null {
    const bucket = this.#nextBucket((bucket) => running(bucket) < share)
    if (bucket === undefined) return null
    const jobs = this.#waiting.get(bucket) ?? []
    this.#turn += 1
    this.#turns.set(bucket, this.#turn)
    return this.#drop(bucket, jobs, 0) ?? null
  }

  /** Returns false if the job is not in the queue. */
  remove(job: Job): boolean {
    const jobs = this.#waiting.get(job.bucket) ?? []
    const at = jobs.indexOf(job)
    if (at < 0) return false
    this.#drop(job.bucket, jobs, at)
    return true
  }

  clear(): Job[] {
    const all = [...this.#waiting.values()].flat()
    this.#waiting.clear()
    this.#bySize.clear()
    this.#largest = 0
    this.#length = 0
    return all
  }

  #nextBucket(isPreferred: (bucket: string) => boolean): string | undefined {
    let next: { bucket: string; isPreferred: boolean; turn: number } | undefined
    for (const bucket of this.#waiting.keys()) {
      const other = { bucket, isPreferred: isPreferred(bucket), turn: this.#turns.peek(bucket) ?? 0 }
      const isSooner = next?.isPreferred === other.isPreferred ? other.turn < next.turn : other.isPreferred
      if (next === undefined || isSooner) next = other
    }
    return next?.bucket
  }

  #drop(bucket: string, jobs: Job[], at: number): Job | undefined {
    const [job] = jobs.splice(at, 1)
    this.#resize(bucket, jobs.length + 1, jobs.length)
    if (jobs.length === 0) this.#waiting.delete(bucket)
    return job
  }

  /** Records that a bucket has one job more or less. */
  #resize(bucket: string, from: number, to: number): void {
    const former = this.#bySize.get(from)
    former?.delete(bucket)
    if (former?.size === 0) this.#bySize.delete(from)
    if (to > 0) this.#bySize.set(to, (this.#bySize.get(to) ?? new Set()).add(bucket))
    if (to > this.#largest || !this.#bySize.has(this.#largest)) this.#largest = to
    this.#length += to - from
  }
}

interface PlaceLimits {
  readonly all: number
  readonly each: number
  /** Milliseconds. */
  readonly timeout: number
}

/** Places that buckets take in turns: `all` together, `each` at the most. */
export class FairPlaces {
  readonly #limits: PlaceLimits
  readonly #waiting = new PictureQueue<{ readonly bucket: string; readonly begin: () => void }>(
    Number.POSITIVE_INFINITY,
  )
  readonly #taken = new Map<string, number>()
  #free: number

  constructor(limits: PlaceLimits) {
    this.#limits = limits
    this.#free = limits.all
  }

  /** Takes a place for a bucket, and resolves with a function that gives it back. Throws PictureWorkersBusy after the timeout. */
  async take(bucket: string): Promise<() => void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const place = { bucket, begin: resolve }
    const timer = setTimeout(() => {
      if (this.#waiting.remove(place)) reject(new PictureWorkersBusy('no place is free'))
    }, this.#limits.timeout).unref()
    this.#waiting.add(place)
    this.#next()
    await promise
    clearTimeout(timer)
    return () => {
      this.#count(bucket, -1)
      this.#next()
    }
  }

  /** The place counts from the moment at which it is given. */
  #next(): void {
    const { each } = this.#limits
    while (this.#free > 0 && this.#waiting.buckets().some((bucket) => this.#takenBy(bucket) < each)) {
      const place = this.#waiting.take((bucket) => this.#takenBy(bucket), each)
      if (place === null) return
      this.#count(place.bucket, 1)
      place.begin()
    }
  }

  #takenBy(bucket: string): number {
    return this.#taken.get(bucket) ?? 0
  }

  #count(bucket: string, change: 1 | -1): void {
    this.#free -= change
    const taken = this.#takenBy(bucket) + change
    if (taken === 0) this.#taken.delete(bucket)
    else this.#taken.set(bucket, taken)
  }
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
