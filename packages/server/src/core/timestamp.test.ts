import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createTimestampFormat, parseTimestamp } from './timestamp.ts'

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

test('M1 a time is formatted as RFC 3339, after the same one and after another one', () => {
  const times = [0, 1_790_000_000_000, 1_790_000_000_000, 1_790_000_000_001, 0]
  expect(times.map(createTimestampFormat())).toEqual(times.map((time) => new Date(time).toISOString()))
})
