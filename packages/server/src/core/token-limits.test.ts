import { expect, test } from 'vitest'
import { Fault } from './faults.ts'
import { requireWithinLimits } from './token-limits.ts'

test.each([
  [{ maxItems: 1, maxBytes: null }, { items: 1, bytes: null }, 'The token may upload 1 item; 1 is left.'],
  [{ maxItems: 2, maxBytes: null }, { items: 0, bytes: null }, 'The token may upload 2 items; 0 are left.'],
  [{ maxItems: null, maxBytes: 1 }, { items: null, bytes: 1 }, 'The token may upload 1 byte; 1 is left.'],
  [{ maxItems: null, maxBytes: 9 }, { items: null, bytes: 2 }, 'The token may upload 9 bytes; 2 are left.'],
])('T10 a problem names the limit and what is left: %j', (limits, left, detail) => {
  try {
    requireWithinLimits(limits, left, { items: 3, bytes: 10 })
  } catch (error) {
    expect(error instanceof Fault ? error.parameters.map((each) => each.detail) : error).toEqual([detail])
    return
  }
  expect.unreachable()
})
