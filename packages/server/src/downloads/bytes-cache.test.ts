import { expect, test } from 'vitest'
import { newItemId } from '../core/ids.ts'
import { RequestFrequency } from './bytes-cache.ts'

test('a count is exact while few keys are counted, and at most 255', () => {
  const frequency = new RequestFrequency()
  const [often, once, never] = [newItemId(), newItemId(), newItemId()]
  for (let count = 0; count < 300; count += 1) frequency.count(often)
  frequency.count(once)
  expect([often, once, never].map((key) => frequency.of(key))).toEqual([255, 1, 0])
})

test('past requests lose half of their weight after every 65,536 requests', () => {
  const frequency = new RequestFrequency()
  const key = newItemId()
  for (let count = 0; count < 100; count += 1) frequency.count(key)
  for (let count = 100; count < 65_536; count += 1) frequency.count('other')
  expect(frequency.of(key)).toBe(50)
  for (let count = 0; count < 3 * 65_536; count += 1) frequency.count('other')
  expect(frequency.of(key)).toBe(6)
})

test('among 20,000 keys that were counted once, nearly all have the count 1', () => {
  const frequency = new RequestFrequency()
  const keys = Array.from({ length: 20_000 }, newItemId)
  for (const key of keys) frequency.count(key)
  const wrong = keys.filter((key) => frequency.of(key) !== 1)
  expect(wrong.length).toBeLessThan(2_500)
})
