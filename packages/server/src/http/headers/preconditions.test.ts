import type { IncomingHttpHeaders } from 'node:http'
import { expect, test } from 'vitest'
import { checkPreconditions, type PreconditionHeaders, rangeApplies } from './preconditions.ts'

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
  'Sunday, 06-Nov-94 08:49:37 GMT',
  '1735787046',
  '',
])('B4 %j is not an IMF-fixdate and is ignored', (date) => {
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

test('B4 a weak tag of the item never matches If-Range', () => {
  expect(rangeApplies('W/"a"', { ...validators, etag: 'W/"a"' })).toBe(false)
})

test('B4 the IncomingHttpHeaders of Node are accepted', () => {
  const headers: IncomingHttpHeaders = { host: 'media.example', 'if-none-match': '"a"' }
  expect(checkPreconditions(headers, validators)).toBe('not-modified')
})
