import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createTurns } from './turns.ts'

test('each iteration of the event loop has one task, and callers alternate', async () => {
  const turns = createTurns()
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
      await turns.next(caller)
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
