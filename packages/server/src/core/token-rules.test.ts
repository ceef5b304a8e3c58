import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { base32Alphabet, base32Of, createItemIds, isItemId, newItemId, shardOf } from './ids.ts'
import {
  hashToken,
  isServiceToken,
  isWellFormedToken,
  newServiceToken,
  newToken,
  redactTokens,
  requireScope,
  type Scope,
  scopes,
} from './token-rules.ts'

/** A fixed token, so that issued tokens stay well-formed. */
const issued = 'mbkt_0123456789abcdefghjkmnpqrstvwxyzmam962'

test('A8 a token is mbkt_, 32 characters and a checksum of 6', () => {
  for (let count = 0; count < 1000; count++) {
    const token = newToken()
    expect(token).toMatch(/^mbkt_[0-9a-hjkmnp-tv-z]{38}$/)
    expect(isWellFormedToken(token)).toBe(true)
  }
})

test('A8 each of the 32 characters carries five random bits', () => {
  const seen = Array.from({ length: 32 }, () => new Set<string>())
  for (let count = 0; count < 2000; count++) {
    for (const [index, character] of [...newToken().slice(5, 37)].entries()) seen[index]?.add(character)
  }
  expect(seen.map(({ size }) => size)).toEqual(Array.from({ length: 32 }, () => 32))
})

test('A8 the checksum of issued tokens does not change', () => {
  expect(isWellFormedToken(issued)).toBe(true)
})

test('A8 any one changed character is detected', () => {
  for (const token of [issued, newToken()]) {
    for (let index = 0; index < token.length; index++) {
      for (const character of `${base32Alphabet}ilouA_-. é`) {
        if (character === token.charAt(index)) continue
        const changed = token.slice(0, index) + character + token.slice(index + 1)
        expect(isWellFormedToken(changed), changed).toBe(false)
      }
    }
  }
})

test('A8 a token cut, lengthened or with two characters swapped is detected', () => {
  fc.assert(
    fc.property(fc.constant(null).map(newToken), fc.nat({ max: 42 }), (token, index) => {
      expect(isWellFormedToken(token.slice(0, index))).toBe(false)
      expect(isWellFormedToken(token + token.charAt(index))).toBe(false)
      const [one, other] = [token.charAt(index), token.charAt(index + 1)]
      const swapped = token.slice(0, index) + other + one + token.slice(index + 2)
      expect(isWellFormedToken(swapped)).toBe(swapped === token)
    }),
  )
})

test('A8 only tokens are well-formed', () => {
  const token = newToken()
  for (const text of ['', 'mbkt_', ` ${token}`, `${token}\n`, token.toUpperCase(), token.slice(5)]) {
    expect(isWellFormedToken(text), text).toBe(false)
  }
})

test('A8 the hash is the SHA-256 of the token', () => {
  expect(Buffer.from(hashToken(issued))).toEqual(createHash('sha256').update(issued).digest())
})

test('base32 writes the low bits, most significant first', () => {
  expect(base32Of(0, 6)).toBe('000000')
  expect(base32Of(1, 6)).toBe('000001')
  expect(base32Of(0xffffffff, 6)).toBe('zzzzzz')
  expect(base32Of((1 << 25) | (2 << 5) | 31, 6)).toBe('10002z')
})

test('the id of an item has 28 characters, or 26 in the first version, and no path, URL or other id is one', () => {
  const ids = new Set(Array.from({ length: 1000 }, newItemId))
  expect(ids.size).toBe(1000)
  for (const id of ids) {
    expect(id).toMatch(/^[0-9a-hjkmnp-tv-z]{28}$/)
    expect(isItemId(id)).toBe(true)
    expect(isItemId(id.slice(2))).toBe(true)
  }
  const [id = ''] = ids
  for (const text of [
    '',
    id.slice(1),
    id.slice(3),
    `${id}0`,
    id.toUpperCase(),
    `${id}\n`,
    `../${id.slice(3)}`,
  ]) {
    expect(isItemId(text), text).toBe(false)
  }
})

test('ids of the same 20 ms share the two characters of their shard, and their 26 random characters do not repeat', () => {
  let time = 1_000
  const newId = createItemIds(() => time)
  const [one, other] = [newId(), newId()]
  expect(shardOf(other)).toBe(shardOf(one))
  const secrets = new Set(Array.from({ length: 1000 }, () => newId().slice(2)))
  expect(secrets.size).toBe(1000)
  const shardsAfter = (step: number) => {
    time += step
    return shardOf(newId())
  }
  expect(new Set(Array.from({ length: 19 }, () => shardsAfter(1)))).toEqual(new Set([shardOf(one)]))
  // Also if the clock is set back; one in a thousand is equal by chance.
  for (const step of [20, -86_400_000])
    expect(new Set(Array.from({ length: 20 }, () => shardsAfter(step))).size).toBeGreaterThan(1)
})

test('every character of an id is equally likely', () => {
  const newId = createItemIds(() => 0)
  const counts = new Map<string, number>()
  for (let round = 0; round < 2_000; round += 1)
    for (const letter of newId().slice(2) + newItemId().slice(0, 2))
      counts.set(letter, (counts.get(letter) ?? 0) + 1)
  // 56,000 letters of 32 kinds: 1,750 of each, standard deviation 41. The limit is six standard deviations.
  expect(counts.size).toBe(32)
  for (const count of counts.values()) expect(Math.abs(count - 1_750)).toBeLessThan(250)
})

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

test('A5 a token without its prefix is removed, also among other letters, and mistyped', () => {
  const letters = fc.array(fc.constantFrom(...'abcXYZ019'), { maxLength: 60 }).map((some) => some.join(''))
  fc.assert(
    fc.property(
      fc.constant(null).map(newToken),
      fc.tuple(letters, letters),
      fc.nat({ max: 2 }),
      (token, [before, after], depth) => {
        const written = [...token.slice(5)].map((letter) => escaped(letter, depth)).join('')
        expect(redactTokens(`/a/${before}${written}${after}/b`)).toMatch(/^\/a\/(?:mbkt|signature)_…\/b$/)
        const mistyped = token.slice(5, 42).replace(/./, 'o')
        expect(redactTokens(`/a/${mistyped}${escaped('i', depth)}/b`)).toBe('/a/mbkt_…/b')
      },
    ),
  )
})

test('A5, ST1 a service token is removed in every percent-encoding, and is no token of a bucket', () => {
  for (let depth = 0; depth <= 3; depth += 1) {
    const token = newServiceToken()
    expect([isServiceToken(token), isWellFormedToken(token), token.length]).toEqual([true, true, 43])
    expect(isServiceToken(newToken())).toBe(false)
    // The checksum covers the prefix.
    expect(isWellFormedToken(token.replace('mbks', 'mbkt'))).toBe(false)
    const written = [...token].map((letter) => escaped(letter, depth)).join('')
    expect(redactTokens(`/a/${written}/b`)).toBe('/a/mbks_…/b')
    expect(redactTokens(`/a/${written.toUpperCase()}/b`)).toBe('/a/mbks_…/b')
  }
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

test('A5 a long text that is not random is no token and stays unchanged', () => {
  for (const path of [
    `/${'a'.repeat(12_000)}`,
    `/${'aB'.repeat(6_000)}`,
    `/${'%61'.repeat(100)}`,
    `/a/${'0'.repeat(38)}.jpg`,
    `/${'pneumonoultramicroscopicsilicovolcanoconiosis'.repeat(3)}`,
  ])
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

test('A3: each scope permits its own operations, and no other scope does', () => {
  for (const needed of scopes) {
    requireScope({ scopes: new Set<Scope>([needed]) }, needed)
    const others = new Set<Scope>(scopes.filter((scope) => scope !== needed))
    const refused = { code: 'scope-missing', message: expect.stringContaining(needed) }
    expect(() => requireScope({ scopes: others }, needed)).toThrow(expect.objectContaining(refused))
  }
})
