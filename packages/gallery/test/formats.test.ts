import { expect, test } from 'vitest'
import { formatDay, formatDuration, formatSize, kindOf, shortType } from '../src/format.ts'

test.each([
  ['2026-05-02', 'Today'],
  ['2026-05-01', 'Yesterday'],
  ['2026-04-30', 'Thursday, April 30, 2026'],
  ['2026-05-03', 'Sunday, May 3, 2026'],
  ['2026-05', 'May 2026'],
  ['unknown', 'unknown'],
])('the day %s is %s on May 2', (day, text) => {
  expect(formatDay(day, new Date(2026, 4, 2, 23, 59))).toBe(text)
  expect(formatDay(day, new Date(2026, 4, 2, 0, 1))).toBe(text)
})

test.each([
  [0.2, '0:01'],
  [7, '0:07'],
  [59.6, '1:00'],
  [750, '12:30'],
  [3725, '1:02:05'],
])('%d seconds are %s', (seconds, text) => {
  expect(formatDuration(seconds)).toBe(text)
})

test.each([
  [0, '0 bytes'],
  [1, '1 byte'],
  [999, '999 bytes'],
  [1000, '1 kB'],
  [1234, '1.2 kB'],
  [99_940, '99.9 kB'],
  [99_960, '100 kB'],
  [999_499, '999 kB'],
  [999_500, '1 MB'],
  [5_000_000_000, '5 GB'],
  [Number.MAX_SAFE_INTEGER, '9 PB'],
])('%i bytes are %s', (bytes, text) => {
  expect(formatSize(bytes)).toBe(text)
})

test.each([
  ['image/jpeg', 'picture'],
  ['IMAGE/PNG', 'picture'],
  ['video/webm', 'video'],
  ['audio/mpeg', 'audio'],
  ['application/pdf', 'pdf'],
  ['text/csv; charset=utf-8', 'text'],
  ['application/ld+json', 'text'],
  ['application/zip', 'archive'],
  ['application/x-7z-compressed', 'archive'],
  ['application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'file'],
  ['application/octet-stream', 'file'],
  ['', 'file'],
])('%j is a %s', (type, kind) => {
  expect(kindOf(type)).toBe(kind)
})

test('the label of an icon is the extension, or else the subtype, or else empty', () => {
  expect(shortType('a.tar.gz', 'application/gzip')).toBe('GZ')
  expect(shortType(null, 'image/jpeg')).toBe('JPEG')
  expect(shortType('no extension.', 'application/octet-stream')).toBe('')
})
