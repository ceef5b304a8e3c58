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
  /** Removes and returns the next job. Buckets with fewer than `share` running jobs go first. */
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
  /** In the order of turns. No list is empty. */
  const waiting = new Map<string, Job[]>()
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
    for (const bucket of waiting.keys()) if (isPreferred(bucket)) return bucket
    const [first] = waiting.keys()
    return first
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
      const job = drop(bucket, jobs, 0) ?? null
      if (waiting.delete(bucket)) waiting.set(bucket, jobs)
      return job
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
