import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  bucketNameRule,
  extensionOf,
  isBucketName,
  linePattern,
  matchingLines,
  parseNameSearch,
  repetitionsOf,
} from './names.ts'

test.each([
  ['photo.JPG', 'jpg'],
  ['a.tar.gz', 'gz'],
  ['.htaccess', null],
  ['name', null],
  ['name.', null],
  ['', null],
])('U7 the extension of %j is %j', (name, extension) => {
  expect(extensionOf(name)).toBe(extension)
})

test.each(['a', '0', 'default', 'my-photos-2025', 'a-', 'a'.repeat(63)])('%j is a bucket name', (name) => {
  expect(isBucketName(name)).toBe(true)
})

test.each(['', '-a', 'A', 'my_photos', 'my photos', 'a.b', 'a/b', '..', 'é', 'a\n', '\na', 'a'.repeat(64)])(
  '%j is not a bucket name',
  (name) => {
    expect(isBucketName(name)).toBe(false)
  },
)

test('the rule describes the accepted names', () => {
  expect(bucketNameRule).toMatch(/1 to 63 lower-case letters, digits and hyphens/)
})

test.each([
  ['harbour', 1],
  ['img_2020', 2],
  ['banana', 2],
  [`${'a'.repeat(199)}b`, 199],
  [`b${'a'.repeat(199)}`, 199],
  ['ab'.repeat(50), 50],
  ['x', 1],
])('K13 the repetitions of %s', (term, repetitions) => {
  expect(repetitionsOf(term)).toBe(repetitions)
})

test('K11 the lines that contain all terms are those of a plain comparison, and have the pattern of two terms', () => {
  const short = (max: number) =>
    fc.array(fc.constantFrom('a', 'b', '.', '|', '📷'), { minLength: 1, maxLength: max })
  fc.assert(
    fc.property(
      fc.array(
        short(6).map((name) => name.join('')),
        { minLength: 1, maxLength: 6 },
      ),
      fc.array(
        short(3).map((term) => term.join('')),
        { minLength: 1, maxLength: 3 },
      ),
      (lines, words) => {
        const terms = parseNameSearch(words.join(' ')) ?? ['']
        const found = lines.flatMap((line, index) =>
          terms.every((term) => line.includes(term)) ? [index] : [],
        )
        expect(matchingLines(lines.join('\n'), terms)).toEqual(found)
        const pattern = linePattern(terms)
        expect(pattern === null).toBe(terms.length === 1)
        if (pattern === null) return
        const [one = '', other = ''] = terms.toSorted((one, other) => other.length - one.length)
        const hasBoth = lines.some((line) => line.includes(one) && line.includes(other))
        expect(new RegExp(pattern.replace('(?n)', '')).test(lines.join('\n'))).toBe(hasBoth)
      },
    ),
  )
})
