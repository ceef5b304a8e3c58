/** A fair queue: buckets take turns, however many jobs each has. */
export interface PictureQueue<Job extends { readonly bucket: string }> {
  readonly length: number
  /** Adds a job; with `first`, before the other jobs of its bucket. */
  add(job: Job, first?: boolean): void
  /** If the queue is too long after `added`, by more than `excess`, removes and returns the last job of the bucket with the most jobs. */
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
  let length = 0

  function drop(bucket: string, jobs: Job[], at: number): Job | undefined {
    const [job] = jobs.splice(at, 1)
    length -= 1
    if (jobs.length === 0) waiting.delete(bucket)
    return job
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
      length += 1
    },
    overflow({ bucket: own }, excess = 0) {
      if (length <= bound + excess) return null
      const count = (bucket: string) => waiting.get(bucket)?.length ?? 0
      // In a tie, the bucket of the new job.
      const most = [...waiting.keys()].reduce((most, next) => (count(next) > count(most) ? next : most), own)
      return drop(most, waiting.get(most) ?? [], count(most) - 1) ?? null
    },
    take(running, share) {
      const turns = [...waiting]
      const turn = turns.find(([bucket]) => running(bucket) < share) ?? turns[0]
      if (turn === undefined) return null
      const [bucket, jobs] = turn
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
      length = 0
      return all
    },
  }
}
