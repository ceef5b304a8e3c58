import { expect, test } from 'vitest'
import { createRecentKeys } from '../../../src/media/listing/recent-keys.ts'

test('a key is known after its first call, and many others replace it', () => {
  const wasRequested = createRecentKeys()
  expect([wasRequested('a'), wasRequested('a'), wasRequested('b'), wasRequested('a')]).toEqual([
    false,
    true,
    false,
    true,
  ])
  for (let key = 0; key < 50_000; key += 1) wasRequested(`other ${key}`)
  expect(wasRequested('a')).toBe(false)
})
