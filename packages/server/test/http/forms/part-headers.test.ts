import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseFileHeaders, readFileHeaders } from '../../../src/http/forms/part-headers.ts'

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

const block = fc
  .record({
    disposition: fc.constantFrom('Content-Disposition', 'CONTENT-disposition', 'Content-Dispositio', 'A'),
    value: fc.constantFrom('form-data', 'FORM-DATA', 'attachment', ''),
    name: fc.oneof(fc.constant('file'), text),
    separator: fc.constantFrom('; ', ';', "; filename*=utf-8''x; "),
    filename: fc.oneof(fc.constant('a.bin'), text),
    between: fc.constantFrom('\r\n', '\n', '\r\nA: b\r\n', '\r\n '),
    type: fc.constantFrom('Content-Type', 'content-TYPE', 'Content-Disposition'),
    declared: fc.oneof(
      fc.constantFrom('image/png', 'text/plain; charset=utf-8', 'multipart/mixed', ''),
      text,
    ),
    after: fc.constantFrom('', ' ', '\r\nContent-Transfer-Encoding: base64', '\r\nContent-Type: a/b'),
  })
  .map(
    ({ disposition, value, name, separator, filename, between, type, declared, after }) =>
      `${disposition}: ${value}; name="${name}"${separator}filename="${filename}"${between}${type}: ${declared}${after}`,
  )

test('U1 the short way through the headers of a file returns and refuses what the complete one does', () => {
  fc.assert(
    fc.property(fc.oneof(block, text), (headers) => {
      const [short, complete] = both(headers)
      expect(short).toEqual(complete)
    }),
    { numRuns: 3000 },
  )
})
