import fc from 'fast-check'
import { expect, test } from 'vitest'
import { matchesStrongly, matchesWeakly } from './entity-tag.ts'

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
