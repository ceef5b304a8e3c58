import { setImmediate } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { runInSteps, settleAll, TickBatch, TickQueue } from './tasks.ts'

test('each iteration of the event loop has one task, and callers alternate', async () => {
  const tickQueue = new TickQueue()
  let iteration = 0
  let isOver = false
  const count = async () => {
    while (!isOver) {
      await setImmediate()
      iteration += 1
    }
  }
  const counting = count()
  const tasks: { caller: string; iteration: number }[] = []
  const work = async (caller: string, length: number) => {
    for (let task = 0; task < length; task += 1) {
      await tickQueue.next(caller)
      tasks.push({ caller, iteration })
    }
  }
  // Ten tasks of one caller wait at the same time.
  const busy = Array.from({ length: 10 }, () => work('a', 3))
  await Promise.all([...busy, work('b', 5), work('c', 5)])
  isOver = true
  await counting
  expect(tasks.slice(0, 15).map(({ caller }) => caller)).toEqual([...'abcabcabcabcabc'])
  expect(tasks).toHaveLength(40)
  expect(new Set(tasks.map(({ iteration }) => iteration)).size).toBe(tasks.length)
})

test('no more than the limit run at once, and the results are in the order of the items', async () => {
  let running = 0
  let most = 0
  const results = await settleAll([5, 1, 4, 2, 3, 0], 2, async (turns) => {
    running += 1
    most = Math.max(most, running)
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve()
    running -= 1
    return turns
  })
  expect(most).toBe(2)
  expect(results.map((result) => result.status === 'fulfilled' && result.value)).toEqual([5, 1, 4, 2, 3, 0])
})

test('a failure does not stop the other items', async () => {
  const done: number[] = []
  const results = await settleAll([1, 2, 3], 1, async (item) => {
    if (item === 1) throw new Error('the first')
    done.push(item)
  })
  expect(done).toEqual([2, 3])
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled'])
  expect(await settleAll([], 3, async () => 1)).toEqual([])
})

test('O5 background work rests as long as a short step took, and only shortly after one that had to wait, for which a stop waits', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const begun: number[] = []
  const durations = [10, 60_000, 0]
  const work = runInSteps(
    async () => {
      begun.push(performance.now())
      await new Promise((resolve) => setTimeout(resolve, durations[begun.length - 1]))
      return begun.length < durations.length
    },
    () => false,
  )
  await vi.runAllTimersAsync()
  await work
  const [first = 0] = begun
  expect(begun.map((time) => time - first)).toEqual([0, 20, 60_120])
})

test('what arrives in one iteration of the event loop is handled together, and the rest later', async () => {
  const handled: (readonly number[])[] = []
  const batch = new TickBatch<number>((all) => {
    handled.push(all)
    if (handled.length === 1) batch.add(3)
  })
  batch.flush()
  batch.add(1)
  batch.add(2)
  expect(handled).toEqual([])
  await setImmediate()
  expect(handled).toEqual([[1, 2]])
  await setImmediate()
  batch.add(4)
  batch.flush()
  await setImmediate()
  expect(handled).toEqual([[1, 2], [3], [4]])
})
