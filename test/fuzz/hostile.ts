import type { Random } from './random.ts'

/** Texts that often break parsers. */
const texts: readonly [string, ...string[]] = [
  '',
  ' ',
  '\t',
  '0',
  '-1',
  '1',
  '2',
  '00',
  '+1',
  '1e9',
  '0x10',
  '1.5',
  '9007199254740991',
  '9007199254740992',
  '18446744073709551616',
  'NaN',
  'null',
  'true',
  '[]',
  '{"a":1}',
  '"',
  '""',
  "'",
  '\\',
  '%00',
  '%zz',
  '%',
  '%2e%2e%2f',
  '../../../etc/passwd',
  '..\\..\\x',
  '/',
  '*',
  'W/"x"',
  '"x", "y"',
  '"x',
  'bytes=0-',
  'bytes=-1',
  'bytes=5-2',
  'bytes=0-0,2-3',
  'bytes=99999999999999999999-',
  'bytes=a-b',
  'Bearer',
  'Bearer ',
  'Basic eDp5',
  'gzip;q=0',
  'gzip;q=9',
  'br, *;q=0',
  'Thu, 01 Jan 1970 00:00:00 GMT',
  'Sun, 99 Foo 2026 99:99:99 GMT',
  'filename YQ==',
  'filename ?',
  'filename YQ==,filename YQ==',
  'sha1 AAAA',
  'sha256 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=',
  'md5 x',
  '\x7f',
  'é',
  '𝒳',
  '\u202e',
  '\ufeff',
  'CON',
  '.',
  '..',
  'a'.repeat(300),
  'a'.repeat(5_000),
  '<script>alert(1)</script>',
  "'; DROP TABLE items; --",
  '$(id)',
]

/** Members that every object of JavaScript has. */
const inherited = ['__proto__', 'constructor', 'toString'] as const

export function hostileText(random: Random): string {
  if (random.oneIn(10)) return random.pick(inherited)
  const parts = Array.from({ length: 1 + random.below(3) }, () => random.pick(texts))
  return random.oneIn(3) ? parts.join('') : (parts[0] ?? '')
}

/** The same without line breaks. */
export const headerValue = (random: Random): string =>
  Buffer.from(hostileText(random).replace(/[\r\n\0]/g, '')).toString('latin1')

/** Bytes changed, dropped, repeated and cut. */
export function mutate(random: Random, bytes: Buffer): Buffer {
  const result = [...bytes]
  for (let change = random.below(4); change > 0; change -= 1) {
    const at = random.below(result.length + 1)
    const how = random.below(4)
    if (how < 2) result.splice(at, 1, random.below(256))
    else if (how === 2) result.splice(at, random.below(8))
    else result.splice(at, 0, ...result.slice(at, at + random.below(20)))
  }
  return Buffer.from(result.slice(0, random.oneIn(5) ? random.below(result.length + 1) : result.length))
}
