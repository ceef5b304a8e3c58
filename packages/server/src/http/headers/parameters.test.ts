import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseParameters } from './parameters.ts'

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
