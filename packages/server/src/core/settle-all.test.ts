import { expect, test } from 'vitest'
import { settleAll } from './settle-all.ts'

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
