import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseDuration, parseExpiry, parseRequestRate, parseTimestamp } from './times.ts'

test.each([
  ['1970-01-01T00:00:00Z', 0],
  ['2026-05-01t12:30:00.5z', Date.UTC(2026, 4, 1, 12, 30, 0, 500)],
  ['2026-05-01T00:00:00+02:00', Date.UTC(2026, 3, 30, 22)],
  ['2026-05-01T00:00:00-00:30', Date.UTC(2026, 4, 1, 0, 30)],
  ['1970-01-01T00:00:00.069Z', 69],
  ['1970-01-01T00:00:00.0690000Z', 69],
  ['1970-01-01T00:00:00.0690001Z', 70],
  ['0000-01-01T00:00:00Z', -62_167_219_200_000],
  ['2024-02-29T23:59:59.9999Z', Date.UTC(2024, 2, 1)],
])('K8 %s is a time of RFC 3339', (text, expected) => {
  expect(parseTimestamp(text)).toBe(expected)
})

test.each([
  '',
  '2026-05-01',
  '2026-05-01T00:00Z',
  '2026-05-01T00:00:00',
  '2026-05-01T00:00:00 02:00',
  '2026-05-01 00:00:00Z',
  '2026-05-01T00:00:00+0200',
  '2026-02-30T00:00:00Z',
  '2025-02-29T00:00:00Z',
  '2026-13-01T00:00:00Z',
  '2026-00-01T00:00:00Z',
  '2026-05-01T24:00:00Z',
  '2026-05-01T00:00:60Z',
  '2026-05-01T00:00:00.Z',
  '+002026-05-01T00:00:00Z',
  ' 2026-05-01T00:00:00Z',
  '2026-05-01T00:00:00Z\n',
])('K8 %j is none', (text) => {
  expect(parseTimestamp(text)).toBeNull()
})

test('K8 every time that the service sends is parsed as itself', () => {
  const times = fc.date({
    min: new Date('0000-01-01T00:00:00Z'),
    max: new Date('9999-12-31T23:59:59.999Z'),
    noInvalidDate: true,
  })
  fc.assert(
    fc.property(times, (time) => {
      expect(parseTimestamp(time.toISOString())).toBe(time.getTime())
    }),
  )
})

test.each([
  ['9999-12-31T23:59:59Z', Date.UTC(9999, 11, 31, 23, 59, 59)],
  ['9999-12-31T23:59:59.999Z', Date.UTC(9999, 11, 31, 23, 59, 59, 999)],
  ['9999-12-31T23:59:59-00:01', undefined],
  ['2026-05-01T00:00:00Z', undefined],
  ['2026-05-01T00:00:00.001Z', Date.UTC(2026, 4, 1) + 1],
])('E1 an expiry of %s is %j at the beginning of May 2026', (text, expected) => {
  expect(parseExpiry(text, Date.UTC(2026, 4, 1))).toBe(expected)
})

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

test.each([
  ['600/1m', { requests: 600, window: 60_000 }],
  ['1/1s', { requests: 1, window: 1000 }],
  ['999999999/1d', { requests: 999_999_999, window: 86_400_000 }],
  ['5/2000ms', { requests: 5, window: 2000 }],
  ['off', null],
  ['0', null],
])('%j is the rate %j', (text, rate) => {
  expect(parseRequestRate(text)).toEqual(rate)
})

test.each(['', '600', '600/', '600/m', '0/1m', '-1/1m', '1.5/1s', '600/1500ms', '600/2d', '600 / 1m', 'on'])(
  '%j is not a rate',
  (text) => {
    expect(parseRequestRate(text)).toBe(undefined)
  },
)
