import type { IncomingHttpHeaders } from 'node:http'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  acceptsCoding,
  checkPreconditions,
  createFormatChoice,
  matchesStrongly,
  matchesWeakly,
  namesType,
  type PreconditionHeaders,
  parseByteRange,
  parseParameters,
  rangeApplies,
  weightOf,
} from './headers.ts'

const read = (header: string) => {
  const parsed = parseParameters(header)
  return parsed && [parsed.value, Object.fromEntries(parsed.parameters)]
}

test.each([
  ['attachment', 'attachment', {}],
  [' Text/HTML ; Charset = UTF-8 ', 'text/html', { charset: 'UTF-8' }],
  ['a;b=c;d="e;f";', 'a', { b: 'c', d: 'e;f' }],
  ['a;;b=c; ;', 'a', { b: 'c' }],
  ['a; b=""', 'a', { b: '' }],
  ['a; b="\\"c\\\\d\\e"', 'a', { b: '"c\\d\\e' }],
  ['a; __proto__=b', 'a', { ['__proto__']: 'b' }],
])('U3 %s', (header, value, parameters) => {
  expect(read(header)).toEqual([value, parameters])
})

test.each([
  '',
  ';',
  '=',
  'a b',
  'a; b',
  'a; b=',
  'a; b="',
  'a; b="\\"',
  'a; b=c d',
  'a; b=c; B=d',
  'a; b="c"d',
  'a/b/c',
])('U3 %s is malformed', (header) => {
  expect(read(header)).toBeNull()
})

test('U3 quoted values are unescaped, and long headers take linear time', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const quoted = text.replace(/["\\]/g, '\\$&')
      expect(parseParameters(`a; b="${quoted}"; c=d`)?.parameters.get('b')).toBe(text)
    }),
  )
  const begun = performance.now()
  for (const piece of [' ', ';', '; ', '\\', 'a', 'a=', ';a=', '"'])
    parseParameters(`a;${piece.repeat(16_000)}\0`)
  // A quadratic parser takes minutes; a busy machine does not.
  expect(performance.now() - begun).toBeLessThan(30_000)
})

test.each([
  'text/html',
  'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  'application/xml, TEXT/HTML;q=0.5',
  'text/html;charset=utf-8',
  'text/html;q=0.05',
])('Accept: %s names text/html', (accept) => {
  expect(namesType(accept, 'text/html')).toBe(true)
})

test.each([
  undefined,
  '',
  '*/*',
  'text/*',
  'text/plain',
  'text/html;q=0',
  'text/html; q=0.000',
  'text/htmlx',
])('Accept: %s does not name text/html', (accept) => {
  expect(namesType(accept, 'text/html')).toBe(false)
})

test.each([
  ['text/html', 1],
  ['text/html;q=0.5', 0.5],
  ['text/html; level=1; Q=0.25, text/plain', 0.25],
  ['text/plain;q=0.9, text/html;q=0.1', 0.1],
  ['text/html;q=x', 1],
  ['text/plain', 0],
])('Accept: %s gives text/html the weight %d', (accept, weight) => {
  expect(weightOf(accept, 'text/html')).toBe(weight)
})

const chrome = 'image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8'
const safari = 'image/webp,image/avif,image/jxl,image/heic,video/*;q=0.8,image/png,image/*;q=0.8,*/*;q=0.5'
const formatFor = createFormatChoice()

test.each([
  [undefined, 'webp'],
  ['', 'webp'],
  ['*/*', 'webp'],
  ['image/*', 'webp'],
  ['image/webp', 'webp'],
  ['image/avif', 'avif'],
  ['IMAGE/AVIF', 'avif'],
  [chrome, 'avif'],
  [safari, 'avif'],
  ['image/avif;q=0, */*', 'webp'],
  ['image/avif;q=0', 'webp'],
  ['image/avif;q=0.5, image/webp', 'webp'],
  ['image/avif;q=0.5, image/webp;q=0.5', 'avif'],
  ['image/avif;q=0.5, image/*;q=0.8', 'webp'],
  ['image/avif;q=0.9, image/*;q=0.8, */*', 'avif'],
  ['image/avif;q=0.9, */*', 'webp'],
  ['image/avif;q=0.5,', 'avif'],
  ['image/webp;q=0, image/avif;q=0.1', 'avif'],
  ['image/avifx', 'webp'],
  ['image/webp2, image/avif;q=0.5, image/*;q=0.8', 'webp'],
  ['image/webpx;q=0.1, image/avif;q=0.2, */*;q=0.3', 'webp'],
])('V4 a variant for Accept %o is %s, however often it is sent', (accept, format) => {
  for (let time = 0; time < 2; time += 1) expect(formatFor(accept)).toBe(format)
})

test('V4 further and longer Accept headers than are remembered are read each time', () => {
  for (let number = 0; number < 300; number += 1) {
    expect(formatFor(`image/avif;q=0.5, image/x-${number}`)).toBe('avif')
    expect(formatFor(`image/x-${number}`)).toBe('webp')
  }
  expect(formatFor(`${'image/x,'.repeat(1_000)}image/avif`)).toBe('avif')
})

test.each([
  ['gzip', true],
  ['gzip, deflate, br', true],
  ['GZIP;q=0.5', true],
  ['deflate , gzip ; q=1', true],
  ['x-gzip', true],
  ['*', true],
  ['gzip;q=0', false],
  ['gzip;q=0, *', false],
  ['*;q=0', false],
  ['identity', false],
  ['br', false],
  ['gzipped', false],
  ['gzip;q=0.5, identity;q=1', false],
  ['identity, *;q=0.1', false],
  ['gzip, identity;q=0.5', true],
  ['gzip;q=0.5, identity;q=0.5', true],
  ['', false],
  [undefined, false],
])('RFC 9110, section 12.5.3: %j allows gzip: %j', (header, allowed) => {
  expect(acceptsCoding(header, 'gzip')).toBe(allowed)
})

test.each([
  ['gzip, deflate, br', true],
  ['*', true],
  ['br;q=0, *', false],
  ['gzip', false],
])('RFC 9110, section 12.5.3: %j allows br: %j', (header, allowed) => {
  expect(acceptsCoding(header, 'br')).toBe(allowed)
})

test.each([
  ['"a"', true, true],
  ['W/"a"', true, false],
  ['*', true, true],
  [' * ', true, true],
  ['"b"', false, false],
  ['"b", "a"', true, true],
  ['"b",W/"a"', true, false],
  ['W/"a", "a"', true, true],
  [',, "b" ,\t, "a" ,', true, true],
  ['"b,a", "c"', false, false],
  ['"x,", "a"', true, true],
  ['"x, \\"", "a"', false, false],
  ['w/"a"', false, false],
  ['a', false, false],
  ['"a', false, false],
  ['"a"x', false, false],
  ['"b" "a"', false, false],
  ['"A"', false, false],
  ['""', false, false],
  ['', false, false],
])(
  'RFC 9110 13.1.1, 13.1.2: %j against "a" matches weakly %s and strongly %s',
  (header, weakly, strongly) => {
    expect(matchesWeakly(header, '"a"')).toBe(weakly)
    expect(matchesStrongly(header, '"a"')).toBe(strongly)
  },
)

test('RFC 9110 8.8.3.2: a weak tag of the item matches only weakly', () => {
  expect(matchesWeakly('"a"', 'W/"a"')).toBe(true)
  expect(matchesStrongly('"a"', 'W/"a"')).toBe(false)
  expect(matchesStrongly('W/"a"', 'W/"a"')).toBe(false)
})

const opaque = fc.stringMatching(/^[!#-~\x80-\xff]{0,8}$/)
const tags = fc.array(fc.record({ weak: fc.boolean(), opaque }), { minLength: 1, maxLength: 6 })

test('L16 a list matches exactly its tags', () => {
  fc.assert(
    fc.property(tags, opaque, fc.constantFrom(',', ', ', ' ,, '), (list, other, comma) => {
      const header = list.map((tag) => `${tag.weak ? 'W/' : ''}"${tag.opaque}"`).join(comma)
      for (const wanted of [other, ...list.map((tag) => tag.opaque)]) {
        const named = list.filter((tag) => tag.opaque === wanted)
        expect(matchesWeakly(header, `"${wanted}"`)).toBe(named.length > 0)
        expect(matchesStrongly(header, `"${wanted}"`)).toBe(named.some((tag) => !tag.weak))
      }
    }),
  )
})

test.each([
  ['commas', ','.repeat(200_000)],
  ['spaces', ' '.repeat(200_000)],
  ['commas and spaces', ' ,\t'.repeat(100_000)],
  ['an open quote', `"${'a'.repeat(200_000)}`],
  ['spaces behind a tag', `"b"${' '.repeat(200_000)}x`],
  ['many tags', '"b" , '.repeat(50_000)],
  ['weakness prefixes', 'W/'.repeat(100_000)],
])('RFC 9110 8.8.3: %s are parsed in linear time', (_, header) => {
  const before = performance.now()
  expect(matchesWeakly(header, '"a"')).toBe(false)
  // A quadratic parser takes minutes; a busy machine does not.
  expect(performance.now() - before).toBeLessThan(30_000)
})

// Half a second after the whole second of the date header.
const validators = { etag: '"a"', lastModified: Date.UTC(2025, 0, 2, 3, 4, 5, 500) }
const before = 'Thu, 02 Jan 2025 03:04:04 GMT'
const same = 'Thu, 02 Jan 2025 03:04:05 GMT'
const after = 'Thu, 02 Jan 2025 03:04:06 GMT'

const cases: [PreconditionHeaders, ReturnType<typeof checkPreconditions>][] = [
  [{}, 'proceed'],
  [{ 'if-match': '"a"' }, 'proceed'],
  [{ 'if-match': '*' }, 'proceed'],
  [{ 'if-match': '"b"' }, 'failed'],
  [{ 'if-match': 'W/"a"' }, 'failed'],
  [{ 'if-unmodified-since': before }, 'failed'],
  [{ 'if-unmodified-since': same }, 'proceed'],
  [{ 'if-unmodified-since': after }, 'proceed'],
  [{ 'if-none-match': '"a"' }, 'not-modified'],
  [{ 'if-none-match': 'W/"a"' }, 'not-modified'],
  [{ 'if-none-match': '*' }, 'not-modified'],
  [{ 'if-none-match': '"b"' }, 'proceed'],
  [{ 'if-modified-since': before }, 'proceed'],
  [{ 'if-modified-since': same }, 'not-modified'],
  [{ 'if-modified-since': after }, 'not-modified'],
  // Dates are ignored with tags.
  [{ 'if-match': '"a"', 'if-unmodified-since': before }, 'proceed'],
  [{ 'if-match': '"b"', 'if-unmodified-since': after }, 'failed'],
  [{ 'if-none-match': '"b"', 'if-modified-since': after }, 'proceed'],
  [{ 'if-none-match': '"a"', 'if-modified-since': before }, 'not-modified'],
  // A failed condition takes precedence over an unchanged state.
  [{ 'if-match': '"b"', 'if-none-match': '"a"' }, 'failed'],
  [{ 'if-match': '"a"', 'if-none-match': '"a"' }, 'not-modified'],
  [{ 'if-unmodified-since': before, 'if-modified-since': after }, 'failed'],
  [{ 'if-unmodified-since': same, 'if-none-match': '"a"' }, 'not-modified'],
  // If-Range is evaluated separately.
  [{ 'if-range': '"b"' }, 'proceed'],
]

test.each(cases)('B4 RFC 9110 13.2.2: %j → %s', (headers, outcome) => {
  expect(checkPreconditions(headers, validators)).toBe(outcome)
})

test.each([
  '2030-01-01',
  'Thu, 02 Jan 2025 03:04:06 UTC',
  'Fri, 02 Jan 2025 03:04:06 GMT',
  'Thu, 02 Jan 2025 03:04:06 +0000',
  'Thu, 2 Jan 2025 03:04:06 GMT',
  'Tue, 30 Feb 2025 03:04:06 GMT',
  'Friday, 02-Jan-25 03:04:06 GMT',
  'Thu, 02-Jan-25 03:04:06 GMT',
  'Thursday, 02-Jan-25 03:04:06 UTC',
  'Fri Jan  2 03:04:06 2025',
  'Thu Jan 2 03:04:06 2025',
  'Thu Feb 30 03:04:06 2025',
  '1735787046',
  '',
])('B4 %j is no date of HTTP and is ignored', (date) => {
  expect(checkPreconditions({ 'if-modified-since': date }, validators)).toBe('proceed')
  expect(checkPreconditions({ 'if-unmodified-since': date }, validators)).toBe('proceed')
  expect(rangeApplies(date, { ...validators, lastModified: Date.parse(date) })).toBe(false)
})

test.each([
  [undefined, true],
  ['"a"', true],
  ['"b"', false],
  ['W/"a"', false],
  ['*', false],
  ['"b", "a"', false],
  [before, false],
  [same, true],
  [after, false],
])('B4 RFC 9110 13.1.5: If-Range %j applies: %s', (header, applies) => {
  expect(rangeApplies(header, validators)).toBe(applies)
})

test('B4 RFC 9110 13.1.3 to 13.1.5: conditions with dates are ignored if the time of the last change is unknown', () => {
  const undated = { ...validators, lastModified: null }
  for (const date of [before, same, after]) {
    expect(checkPreconditions({ 'if-modified-since': date }, undated)).toBe('proceed')
    expect(checkPreconditions({ 'if-unmodified-since': date }, undated)).toBe('proceed')
    expect(rangeApplies(date, undated)).toBe(false)
  }
  expect(rangeApplies('', undated)).toBe(false)
  expect(rangeApplies('"a"', undated)).toBe(true)
})

test('B4 a weak tag of the item never matches If-Range', () => {
  expect(rangeApplies('W/"a"', { ...validators, etag: 'W/"a"' })).toBe(false)
})

test('B4 the IncomingHttpHeaders of Node are accepted', () => {
  const headers: IncomingHttpHeaders = { host: 'media.example', 'if-none-match': '"a"' }
  expect(checkPreconditions(headers, validators)).toBe('not-modified')
})

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

test.each([
  ['Thursday, 02-Jan-25 03:04:04 GMT', 'Thursday, 02-Jan-25 03:04:05 GMT'],
  ['Thu Jan  2 03:04:04 2025', 'Thu Jan  2 03:04:05 2025'],
])('B4 RFC 9110 5.6.7: obsolete dates are understood: %s', (earlier, equal) => {
  expect(checkPreconditions({ 'if-modified-since': earlier }, validators)).toBe('proceed')
  expect(checkPreconditions({ 'if-modified-since': equal }, validators)).toBe('not-modified')
  expect(checkPreconditions({ 'if-unmodified-since': earlier }, validators)).toBe('failed')
  expect(checkPreconditions({ 'if-unmodified-since': equal }, validators)).toBe('proceed')
  expect(rangeApplies(equal, validators)).toBe(true)
  expect(rangeApplies(earlier, validators)).toBe(false)
})

test('B4 RFC 9110 5.6.7: two digits of a year are at most 50 years in the future, and all weekdays are known', () => {
  const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
  for (const date of [1, 2, 3, 4, 5, 6, 7].map((day) => new Date(Date.UTC(1994, 10, day, 8, 49, 37)))) {
    const obsolete = `${days[date.getUTCDay()]}, ${date.toUTCString().slice(5, 7)}-Nov-94 08:49:37 GMT`
    expect(rangeApplies(obsolete, { etag: '"a"', lastModified: date.valueOf() })).toBe(true)
  }
})
