import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bucketNameFor, parseBucketPattern } from './bucket-settings.ts'
import { isBucketName } from './names.ts'

const pattern = (text: string) => parseBucketPattern(text) ?? expect.unreachable()

test.each([
  ['user-{sub}', 'anna', 'user-anna'],
  ['user-{sub}', '248289761001', 'user-248289761001'],
  ['user-{sub}', '9f2c6a10-8d3e-4b57-a1c4-0e6b7d9f2a31', 'user-9f2c6a10-8d3e-4b57-a1c4-0e6b7d9f2a31'],
  ['user-{sub}', 'auth0|5f7c8ec7', 'user-x--auth0-7c5f7c8ec7'],
  ['user-{sub}', 'Anna', 'user-x---41nna'],
  ['user-{sub}', 'jörg', 'user-x--j-c3-b6rg'],
  ['user-{sub}', 'a--b', 'user-x--a-2d-2db'],
  ['user-{sub}', 'x--a', 'user-x--x-2d-2da'],
  ['{tenant}-media', 'blue', 'blue-media'],
  ['{tenant}', '-', 'x---2d'],
  ['user-{/sub}', 'anna', 'user-anna'],
])('J4 the bucket of %s with %s is %s', (text, value, name) => {
  expect(bucketNameFor(pattern(text), value)).toBe(name)
})

test('J4 a value that is too long is hashed; two that begin alike have different buckets', () => {
  const [a, b] = ['a', 'b'].map((end) => bucketNameFor(pattern('user-{sub}'), 'x'.repeat(254) + end))
  expect(a).toMatch(/^user-h--[0-9a-f]{40}$/)
  expect(b).not.toBe(a)
})

test('J4 different values have different names, and every name is valid', () => {
  const patterns = ['user-{sub}', '{t}', '{t}-media', 'a--{t}--b'].map(pattern)
  const letter = fc.constantFrom(
    'a',
    'A',
    'b',
    '0',
    '-',
    '--',
    'x--',
    'h--',
    '-41',
    '|',
    'ä',
    'a\u0308',
    '.',
    ' ',
  )
  const value = fc.oneof(
    fc.array(letter, { minLength: 1, maxLength: 12 }).map((some) => some.join('')),
    fc.string({ minLength: 1, unit: 'binary' }),
  )
  fc.assert(
    fc.property(fc.constantFrom(...patterns), value, value, (of, one, other) => {
      const [first, second] = [bucketNameFor(of, one), bucketNameFor(of, other)]
      expect(first === second).toBe(one === other)
      expect(isBucketName(first ?? '')).toBe(true)
    }),
    { numRuns: 2_000 },
  )
})

test.each([undefined, null, 5, true, '', ['a'], { sub: 'a' }, 'x'.repeat(256), 'a\ud800'])(
  'J4 %j names no bucket',
  (value) => {
    expect(bucketNameFor(pattern('user-{sub}'), value)).toBeNull()
  },
)

test.each([
  '',
  'user',
  '{sub}',
  '{/sub}',
  'user-{sub',
  '{a}{b}',
  '{a}-{b}',
  '-{a}',
  'User-{sub}',
  'user-{}',
  `${'x'.repeat(21)}{a}`,
  `a{a}${'x'.repeat(20)}`,
  'u {a}',
])('J4 %s is no pattern', (text) => {
  expect(parseBucketPattern(text)).toBeNull()
})
