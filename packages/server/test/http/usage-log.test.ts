import { expect, onTestFinished, test, vi } from 'vitest'
import { seededRandom } from '../../../../test/harness/random.ts'
import { dayOf } from '../../src/core/times.ts'
import { type RequestKind, UsageLog } from '../../src/http/usage-log.ts'
import type { BucketId } from '../../src/storage/catalog/records.ts'
import type { CountedRequests } from '../../src/storage/catalog/usage.ts'

const bucket = 1 as BucketId
const kinds: readonly RequestKind[] = ['list', 'download', 'upload', 'other']

/** A log with a clock of its own, and what it has stored. */
function openLog(store: (rows: readonly CountedRequests[]) => void = () => {}) {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const stored: CountedRequests[] = []
  const failures: unknown[] = []
  let isFull = false
  const log = new UsageLog({
    catalog: {
      async addUsage(rows) {
        store(rows)
        stored.push(...rows)
      },
    },
    now: Date.now,
    hasRoom: () => !isFull,
    onFailure: (error) => failures.push(error),
  })
  const setFull = (full: boolean) => {
    isFull = full
  }
  return { log, stored, failures, setFull }
}

const row = (day: number, counts: Partial<CountedRequests> = {}): CountedRequests => ({
  ...{ bucketId: bucket, day, downloadedBytes: 0 },
  ...{ listRequests: 0, downloadRequests: 0, uploadRequests: 0, otherRequests: 0 },
  ...counts,
})

test('US8 counts are stored within a minute, once, and nothing is stored while nothing is counted', async () => {
  const { log, stored } = openLog()
  const today = dayOf(Date.now())
  for (const kind of kinds) log.countRequest(bucket, kind)
  log.countBytes(bucket, 5)
  log.countBytes(bucket, 6)
  await vi.advanceTimersByTimeAsync(60_000)
  const counts = {
    downloadedBytes: 11,
    listRequests: 1,
    downloadRequests: 1,
    uploadRequests: 1,
    otherRequests: 1,
  }
  expect(stored).toEqual([row(today, counts)])
  await vi.advanceTimersByTimeAsync(600_000)
  expect(stored).toHaveLength(1)
  expect(vi.getTimerCount()).toBe(0)
})

test('US8 a stop stores what is waiting, and a full disk keeps it in memory', async () => {
  const { log, stored, setFull } = openLog()
  const today = dayOf(Date.now())
  log.countRequest(bucket, 'list')
  setFull(true)
  await vi.advanceTimersByTimeAsync(180_000)
  expect(stored).toEqual([])
  setFull(false)
  expect(await log.close()).toBe(0)
  expect(stored).toEqual([row(today, { listRequests: 1 })])
  expect(vi.getTimerCount()).toBe(0)
})

test('US3, US8 requests around midnight count on their days, and failed batches are repeated without loss', async () => {
  const random = seededRandom()
  let failing = true
  const { log, stored, failures } = openLog(() => {
    if (failing) throw new Error('the catalog is busy')
  })
  const midnight = (dayOf(Date.now()) + 1) * 86_400_000
  const expected = new Map<string, number>()
  for (let step = 0; step < 400; step += 1) {
    // The clock is set back now and then.
    vi.setSystemTime(midnight + (random(200) - 100) * 1_000)
    const id = (1 + random(450)) as BucketId
    const kind = kinds[random(4)] ?? 'other'
    log.countRequest(id, kind)
    const key = `${dayOf(Date.now())} ${id} ${kind}`
    expected.set(key, (expected.get(key) ?? 0) + 1)
    failing = random(3) > 0
    if (random(10) === 0) await vi.advanceTimersByTimeAsync(45_000)
  }
  failing = false
  expect(await log.close()).toBe(0)
  const found = new Map<string, number>()
  for (const { bucketId, day, ...counts } of stored)
    for (const kind of kinds) {
      const count = counts[`${kind}Requests`]
      const key = `${day} ${bucketId} ${kind}`
      if (count > 0) found.set(key, (found.get(key) ?? 0) + count)
    }
  expect(new Map([...found].toSorted())).toEqual(new Map([...expected].toSorted()))
  expect(failures.length).toBeGreaterThan(0)
})

test('US8 a stop reports what could not be stored', async () => {
  const { log } = openLog(() => {
    throw new Error('the catalog is gone')
  })
  log.countRequest(bucket, 'list')
  expect(await log.close()).toBe(1)
})
