import { expect, test } from 'vitest'
import { requestIdsOf } from './request-ids.ts'

test('O15 each request without an id gets 32 random digits', () => {
  // More than are drawn at once.
  const ids = Array.from({ length: 1_000 }, () => requestIdsOf({}).id)
  expect(new Set(ids).size).toBe(ids.length)
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/)
  // Each digit of an id has all values in a thousand ids.
  for (let digit = 0; digit < 32; digit += 1) expect(new Set(ids.map((id) => id[digit])).size).toBe(16)
})
