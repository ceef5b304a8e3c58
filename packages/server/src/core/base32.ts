import { randomBytes, randomFillSync } from 'node:crypto'

/** Crockford's base32 in lower case: no letter that resembles a digit, no character that a URL escapes. */
export const base32Alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

/** `length` characters that carry five random bits each. */
export type RandomBase32 = (length: number) => string

export const randomBase32: RandomBase32 = (length) => lettersOf(randomBytes(length))

/** For many values: reads 4096 random bytes at a time from the system, and uses each byte once. */
export function createRandomBase32(): RandomBase32 {
  const bytes = randomBytes(4096)
  let used = bytes.length
  return (length) => {
    if (used + length > bytes.length) {
      randomFillSync(bytes)
      used = 0
    }
    used += length
    return lettersOf(bytes.subarray(used - length, used))
  }
}

function lettersOf(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += base32Alphabet.charAt(byte & 31)
  return text
}

/** The low `5 × length` bits of a whole number of at most 32 bits, most significant first. */
export function base32Of(value: number, length: number): string {
  let text = ''
  for (let shift = 5 * (length - 1); shift >= 0; shift -= 5) {
    text += base32Alphabet.charAt((value >>> shift) & 31)
  }
  return text
}
