import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseFileHeaders, readFileHeaders } from './part-headers.ts'

/** What a function returns, or the message of what it throws. */
function outcomeOf(read: () => unknown): unknown {
  try {
    return read()
  } catch (error) {
    return error instanceof Error ? error.message : error
  }
}

const both = (block: string) =>
  [readFileHeaders, parseFileHeaders].map((read) => outcomeOf(() => read(block, 'b')))

test.each([
  ['photo.jpg', 'image/jpeg'],
  ['two words.txt', 'text/plain'],
  ['a;b=c, (d).tar.gz', 'application/vnd.api+json'],
])('U1 the plain headers of a file named %j of type %j are read', (filename, declaredType) => {
  for (const name of ['Content-Disposition', 'content-disposition']) {
    const block = `${name}: form-data; name="file"; filename="${filename}"\r\nContent-Type: ${declaredType}`
    expect(both(block)).toEqual([
      { filename, declaredType },
      { filename, declaredType },
    ])
  }
})

const text = fc
  .array(
    fc.oneof(
      fc.constantFrom('"', '\\', '\\"', '%22', '%', '%0d', '\0', '\r', '\n', '\r\n', '\r\n ', ';', '=', ':'),
      fc.constantFrom('--b', '\r\n--b', 'a', ' ', '\t', '\u007f', '\u00e9', '\u0131', '\u017f'),
      fc.string({ maxLength: 4 }),
    ),
    { maxLength: 6 },
  )
  .map((parts) => parts.join(''))

/** Mostly the plain value, so that a block usually has one or two others. */
const mostly = (plain: string, ...others: fc.Arbitrary<string>[]) =>
  fc.oneof({ arbitrary: fc.constant(plain), weight: 6 }, ...others)
const other = (...values: string[]) => fc.constantFrom(...values)

const block = fc
  .tuple(
    mostly('Content-Disposition', other('CONTENT-disposition', 'Content-Dispositio', 'A')),
    mostly(': form-data; name="', other(': FORM-DATA; NAME="', ':form-data;name="', ': attachment; name="')),
    mostly('file', text),
    mostly(
      '"; filename="',
      other('"; filename="x"; filename="', '"; filename*=utf-8\'\'x; filename="', '"; a="'),
    ),
    fc.oneof(fc.constant('a.bin'), text),
    mostly('"\r\n', other('"\n', '"\r\nA: b\r\n', '"\r\n ', '" \r\n', '\r\n')),
    mostly('Content-Type: ', other('content-TYPE: ', 'Content-Type:', 'Content-Disposition: ', '')),
    mostly('image/png', other('text/plain; charset=utf-8', 'multipart/mixed', '', 'image', ' a/b'), text),
    mostly('', other(' ', '\r\nContent-Transfer-Encoding: base64', '\r\nContent-Type: a/b', '\r\n')),
  )
  .map((parts) => parts.join(''))

test('U1 the short way through the headers of a file returns and refuses what the complete one does', () => {
  fc.assert(
    fc.property(fc.oneof(block, text), (headers) => {
      const [short, complete] = both(headers)
      expect(short).toEqual(complete)
    }),
    { numRuns: 2000 },
  )
})
