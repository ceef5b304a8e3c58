import { expect, test } from 'vitest'
import { Fault } from './faults.ts'
import { parseSize, requireWithinLimits } from './quotas.ts'

test.each([
  ['0', 0],
  ['500', 500],
  ['500B', 500],
  ['10kB', 10_000],
  ['10 KB', 10_000],
  ['5MB', 5_000_000],
  ['5 gb', 5_000_000_000],
  ['1TB', 1_000_000_000_000],
  ['1KiB', 1024],
  ['5MiB', 5_242_880],
  ['5 gib', 5_368_709_120],
  ['2TiB', 2_199_023_255_552],
  ['9007199254740991', Number.MAX_SAFE_INTEGER],
])('%s is %i bytes', (text, bytes) => {
  expect(parseSize(text)).toBe(bytes)
})

test.each([
  '',
  'MB',
  '-1',
  '+1',
  '1.5GB',
  '1e3',
  '01',
  ' 1',
  '1 ',
  '1  MB',
  '1\tMB',
  '1MB\n',
  '5M',
  '5iB',
  '5Mb/s',
  '5PB',
  '9007199254740992',
  '9007200GB',
  '9'.repeat(400),
])('%j is not a size', (text) => {
  expect(parseSize(text)).toBeNull()
})

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
