import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseDuration } from './duration.ts'

test.each([
  ['500ms', 500],
  ['1s', 1000],
  ['30s', 30_000],
  ['15m', 900_000],
  ['12h', 43_200_000],
  ['30d', 2_592_000_000],
  ['2w', 1_209_600_000],
  ['9007199254740991ms', Number.MAX_SAFE_INTEGER],
])('%s is %i milliseconds', (text, milliseconds) => {
  expect(parseDuration(text)).toBe(milliseconds)
})

test.each([
  '',
  '0s',
  '30',
  's',
  '-1s',
  '1.5h',
  '1e3s',
  '01s',
  ' 1s',
  '1s ',
  '1 s',
  '1s\n',
  '1S',
  '1M',
  '1y',
  '1h30m',
  '9007199254740992ms',
  '9007199254740991s',
  `${'9'.repeat(400)}w`,
])('%j is not a duration', (text) => {
  expect(parseDuration(text)).toBeNull()
})

test('each unit is a multiple of the shorter ones', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10_000 }), (amount) => {
      expect(parseDuration(`${amount}w`)).toBe(parseDuration(`${amount * 7}d`))
      expect(parseDuration(`${amount}d`)).toBe(parseDuration(`${amount * 24}h`))
      expect(parseDuration(`${amount}h`)).toBe(parseDuration(`${amount * 60}m`))
      expect(parseDuration(`${amount}m`)).toBe(parseDuration(`${amount * 60}s`))
      expect(parseDuration(`${amount}s`)).toBe(parseDuration(`${amount * 1000}ms`))
    }),
  )
})
