import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseByteRange } from './byte-range.ts'

test.each([
  ['bytes=0-0', { start: 0, end: 0 }],
  ['bytes=0-', { start: 0, end: 99 }],
  ['bytes=10-19', { start: 10, end: 19 }],
  ['bytes=99-', { start: 99, end: 99 }],
  ['bytes=0-99', { start: 0, end: 99 }],
  ['bytes=0-100', { start: 0, end: 99 }],
  ['bytes=50-99999999999999999999', { start: 50, end: 99 }],
  ['bytes=-1', { start: 99, end: 99 }],
  ['bytes=-100', { start: 0, end: 99 }],
  ['bytes=-99999999999999999999', { start: 0, end: 99 }],
  ['bytes=007-008', { start: 7, end: 8 }],
  ['BYTES=1-2', { start: 1, end: 2 }],
  ['bytes= ,1-2, ', { start: 1, end: 2 }],
] as const)('B3 %j of 100 bytes is one range', (header, range) => {
  expect(parseByteRange(header, 100)).toEqual(range)
})

test.each([
  'bytes=100-',
  'bytes=100-200',
  'bytes=99999999999999999999-',
  `bytes=${'9'.repeat(400)}-`,
  'bytes=9007199254740992-9007199254740993',
  'bytes=-0',
  'bytes=-000',
])('B3 %j selects none of 100 bytes', (header) => {
  expect(parseByteRange(header, 100)).toBe('unsatisfiable')
})

test.each([
  undefined,
  '',
  'bytes',
  'bytes=',
  'bytes=-',
  'bytes=abc',
  'bytes=1',
  'bytes=2-1',
  'bytes=200-150',
  'bytes=9007199254740993-9007199254740992',
  'bytes=1-2-3',
  'bytes=+1-2',
  'bytes=1.5-2',
  'bytes=0x1-2',
  'bytes=1 - 2',
  'bytes=١-٢',
  'bytes =1-2',
  'items=1-2',
  ' bytes=1-2',
  'bytes=1-2\n',
  'bytes=0-1,3-4',
  'bytes=0-1, -1',
  'bytes=0-1, bytes=3-4',
])('B3 %j is not a single byte range and is ignored', (header) => {
  expect(parseByteRange(header, 100)).toBe('whole')
})

test('B3 an empty file satisfies no range but a suffix of one byte or more, which is the whole file', () => {
  expect(parseByteRange('bytes=0-', 0)).toBe('unsatisfiable')
  expect(parseByteRange('bytes=0-0', 0)).toBe('unsatisfiable')
  expect(parseByteRange('bytes=-0', 0)).toBe('unsatisfiable')
  // RFC 9110, section 14.1.2: if the file is shorter than the suffix, the whole file is used.
  expect(parseByteRange('bytes=-5', 0)).toBe('whole')
})

const position = fc.oneof(fc.nat({ max: 20 }), fc.nat({ max: Number.MAX_SAFE_INTEGER }))

test('B3 a range selects those of its bytes that exist', () => {
  fc.assert(
    fc.property(position, position, fc.nat({ max: 20 }), (first, last, size) => {
      const bytes = Array.from({ length: size }, (_, index) => index)
      const range = parseByteRange(`bytes=${first}-${last}`, size)
      const wanted = bytes.slice(first, last + 1)
      if (last < first) expect(range).toBe('whole')
      else if (wanted.length === 0) expect(range).toBe('unsatisfiable')
      else expect(range).toEqual({ start: wanted[0], end: wanted.at(-1) })
    }),
  )
})

test('B3 a suffix selects exactly the last bytes', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 20 }), (length, size) => {
      const range = parseByteRange(`bytes=-${length}`, size)
      expect(range).toEqual({ start: Math.max(0, size - length), end: size - 1 })
    }),
  )
})

test.each([
  ['ranges', `bytes=${'0-1,'.repeat(10_000)}`],
  ['commas', `bytes=${','.repeat(200_000)}x`],
  ['spaces', `bytes=0-1${' '.repeat(200_000)}x`],
  ['open ranges', `bytes=${'-'.repeat(200_000)}`],
])('B3 very many %s are ignored in linear time', (_, header) => {
  const before = performance.now()
  expect(parseByteRange(header, 100)).toBe('whole')
  // A quadratic parser takes minutes. A linear one takes milliseconds, and less than the limit on a busy machine.
  expect(performance.now() - before).toBeLessThan(30_000)
})
