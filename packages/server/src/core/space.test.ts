import { expect, test } from 'vitest'
import { parseSize } from './space.ts'

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
