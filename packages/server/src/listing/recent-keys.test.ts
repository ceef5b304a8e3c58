import { expect, test } from 'vitest'
import { RecentKeys } from './recent-keys.ts'

test('a key is known after its first call, for as long as fewer than the remembered keys follow it', () => {
  const keys = new RecentKeys(100)
  const isKnown = (key: string) => keys.noteAgain(key)
  expect([isKnown('a'), isKnown('a'), isKnown('b'), isKnown('a')]).toEqual([false, true, false, true])
  for (let key = 0; key < 98; key += 1) expect(isKnown(`other ${key}`)).toBe(false)
  expect(isKnown('a')).toBe(true)
  for (let key = 0; key < 300; key += 1) isKnown(`further ${key}`)
  expect(isKnown('a')).toBe(false)
})
