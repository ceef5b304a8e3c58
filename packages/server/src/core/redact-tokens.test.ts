import fc from 'fast-check'
import { expect, test } from 'vitest'
import { redactTokens } from './redact-tokens.ts'
import { newToken } from './token-format.ts'

test('A5 a token is removed in every percent-encoding, and the text around it stays', () => {
  const token = newToken()
  fc.assert(
    fc.property(
      fc.array(fc.nat({ max: 4 }), { minLength: token.length, maxLength: token.length }),
      (depths) => {
        const written = [...token].map((letter, i) => escaped(letter, depths[i] ?? 0)).join('')
        expect(redactTokens(`/a/${written}/b`)).toBe('/a/mbkt_…/b')
      },
    ),
  )
})

test('A5 a JWT is removed in every percent-encoding, and the text around it stays', () => {
  const part = (length: number) =>
    fc
      .array(fc.constantFrom(...'abcXYZ019-_'), { minLength: 20, maxLength: length })
      .map((some) => some.join(''))
  fc.assert(
    fc.property(part(40), part(200), part(90), fc.nat({ max: 2 }), (header, claims, signature, depth) => {
      const written = [...`${header}.${claims}.${signature}`].map((letter) => escaped(letter, depth)).join('')
      expect(redactTokens(`/a/${written}/b`)).toBe('/a/jwt_…/b')
    }),
  )
})

test('A5, H11 a signature is removed in every percent-encoding, and the text around it stays', () => {
  const signature = fc
    .uint8Array({ minLength: 32, maxLength: 32 })
    .map((bytes) => Buffer.from(bytes).toString('base64url'))
  fc.assert(
    fc.property(
      signature,
      fc.nat({ max: 2 }),
      fc.constantFrom('=', '/', ':', ',', '%3d'),
      (text, depth, before) => {
        fc.pre(/[a-z]/.test(text) && /[A-Z]/.test(text))
        const written = [...text].map((letter) => escaped(letter, depth)).join('')
        expect(redactTokens(`/a${before}${written}/b`)).toMatch(/^\/a.{1,3}(?:signature|mbkt|jwt)_…\/b$/)
      },
    ),
  )
})

/** A letter, percent-encoded this many times. */
function escaped(letter: string, depth: number): string {
  if (depth === 0) return letter
  return `%${'25'.repeat(depth - 1)}${letter.charCodeAt(0).toString(16)}`
}

test.each([
  '/api/media/k92v8d0q3h5wkc9r1n6x7zjy4tam',
  '/api/uploads/k92v8d0q3h5wkc9r1n6x7zjy4tam',
  '/a%20b/%C3%BC%zz%',
  '/mbkt/x_y',
  '/a-path-of-many-words-with-hyphens-between-all-of-them',
])('A5 %s has no token and stays unchanged', (path) => {
  expect(redactTokens(path)).toBe(path)
})

test('A5 redacting long paths takes linear time', () => {
  const odd = [
    '%25',
    '%2525',
    '%',
    '.',
    'a.',
    `${'a'.repeat(20)}.`,
    '%2e',
    '%252e.',
    'mbkt',
    '%6d',
    'a%',
    '%6d%62%6b%74%',
    `${'a'.repeat(37)}/`,
  ]
  const work = () => odd.map((part) => redactTokens(part.repeat(16_384 / part.length)).length)
  // Quadratic time would take minutes; the limit of the test is seconds.
  for (let i = 0; i < 10; i += 1) expect(work()).toHaveLength(odd.length)
})
