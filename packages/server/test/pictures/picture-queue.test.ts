import { expect, test } from 'vitest'
import { seededRandom } from '../../../../test/harness/random.ts'
import { FairPlaces, PictureQueue } from '../../src/pictures/picture-queue.ts'

interface Job {
  readonly bucket: string
  readonly number: number
}

test('V6, V12, V16 a job that exceeds the bound is the last one of the bucket with the most jobs, after any adds and removals', () => {
  const random = seededRandom()
  const bound = 30
  const queue = new PictureQueue<Job>(bound)
  /** The jobs of each bucket, in order. */
  const expected = new Map<string, Job[]>()
  const jobsOf = (bucket: string) => expected.get(bucket) ?? []
  const remove = (job: Job) =>
    expected.set(
      job.bucket,
      jobsOf(job.bucket).filter((other) => other !== job),
    )

  for (let number = 0; number < 5000; number += 1) {
    const job = { bucket: `${random(random(12) + 1)}`, number }
    const isFirst = random(2) === 0
    queue.add(job, isFirst)
    expected.set(job.bucket, isFirst ? [job, ...jobsOf(job.bucket)] : [...jobsOf(job.bucket), job])

    const isTooLong = queue.length > bound
    const most = Math.max(...[...expected.values()].map((jobs) => jobs.length))
    const dropped = queue.overflow(job)
    expect(dropped !== null).toBe(isTooLong)
    if (dropped !== null) {
      const jobs = jobsOf(dropped.bucket)
      expect([jobs.length, jobs.at(-1)]).toEqual([most, dropped])
      if (jobsOf(job.bucket).length === most) expect(dropped.bucket).toBe(job.bucket)
      remove(dropped)
    }

    const taken = random(3) === 0 ? queue.take(() => 0, 1) : null
    if (taken !== null) {
      expect(taken).toBe(jobsOf(taken.bucket)[0])
      remove(taken)
    }
    const other = jobsOf(job.bucket).at(random(4))
    if (other !== undefined && random(8) === 0) {
      expect(queue.remove(other)).toBe(true)
      remove(other)
    }
    if (number === 2500) {
      queue.clear()
      expected.clear()
    }
    expect(queue.length).toBe([...expected.values()].flat().length)
    expect(new Set(queue.buckets())).toEqual(
      new Set([...expected].filter(([, jobs]) => jobs.length > 0).map(([bucket]) => bucket)),
    )
  }
})

test('V12 a bucket without waiting jobs keeps its last turn, so that it has no two turns in a row', () => {
  const queue = new PictureQueue<Job>(10)
  const take = () => queue.take(() => 0, 1)?.bucket
  queue.add({ bucket: 'a', number: 1 })
  expect(take()).toBe('a')
  queue.add({ bucket: 'a', number: 2 })
  queue.add({ bucket: 'b', number: 1 })
  queue.add({ bucket: 'c', number: 1 })
  expect([take(), take(), take(), take()]).toEqual(['b', 'c', 'a', undefined])
})

test('X6 no bucket has all places, and buckets take turns', async () => {
  const places = new FairPlaces({ all: 3, each: 2, timeout: 60_000 })
  const order: string[] = []
  const releases: (() => void)[] = []
  const taking = ['a', 'a', 'a', 'a', 'b', 'b', 'c'].map(async (bucket) => {
    releases.push(await places.take(bucket))
    order.push(bucket)
  })
  await expect.poll(() => order.join('')).toBe('aab')
  for (const expected of ['aabc', 'aabca', 'aabcab', 'aabcaba']) {
    releases.shift()?.()
    await expect.poll(() => order.join('')).toBe(expected)
  }
  await Promise.all(taking)
  const hasty = new FairPlaces({ all: 1, each: 1, timeout: 1 })
  const release = await hasty.take('a')
  await expect(hasty.take('b')).rejects.toMatchObject({ name: 'PictureWorkersBusy' })
  release()
  await hasty.take('b')
})
