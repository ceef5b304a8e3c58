/** Jobs that wait, by whom they are for. Each bucket gets its turn, however many jobs others have. */
export interface PictureQueue<Job extends { readonly bucket: string }> {
  readonly length: number
  /** Adds a job, `first` before the others of its bucket. */
  add(job: Job, first?: boolean): void
  /** Removes and returns the job that has no room once `added` is there: the last one of the bucket with most jobs. */
  overflow(added: Job): Job | null
  /** Removes the next job. A bucket with `share` jobs running waits while another bucket waits that has fewer. */
  take(running: (bucket: string) => number, share: number): Job | null
  /** Whether a job was waiting, and is removed. */
  remove(job: Job): boolean
  /** Buckets with jobs that wait. */
  buckets(): readonly string[]
  clear(): Job[]
}

/** A queue that should hold `bound` jobs at most. */
export function createPictureQueue<Job extends { readonly bucket: string }>(
  bound: number,
): PictureQueue<Job> {
  /** In the order of their turns; no list is empty. */
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
    overflow({ bucket: own }) {
      if (length <= bound) return null
      const count = (bucket: string) => waiting.get(bucket)?.length ?? 0
      // Where several have as many, that of the new job.
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
