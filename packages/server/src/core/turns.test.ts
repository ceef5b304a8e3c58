import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createTurns } from './turns.ts'

test('each iteration of the event loop has one piece of work, and callers alternate', async () => {
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
  const pieces: { caller: string; iteration: number }[] = []
  const work = async (caller: string, length: number) => {
    for (let piece = 0; piece < length; piece += 1) {
      await turns.next(caller)
      pieces.push({ caller, iteration })
    }
  }
  // Ten pieces of one caller wait at the same time.
  const busy = Array.from({ length: 10 }, () => work('a', 3))
  await Promise.all([...busy, work('b', 5), work('c', 5)])
  isOver = true
  await counting
  expect(pieces.slice(0, 15).map(({ caller }) => caller)).toEqual([...'abcabcabcabcabc'])
  expect(pieces).toHaveLength(40)
  expect(new Set(pieces.map(({ iteration }) => iteration)).size).toBe(pieces.length)
})
