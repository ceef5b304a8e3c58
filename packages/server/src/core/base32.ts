import { randomBytes } from 'node:crypto'

/** Crockford's base32 in lower case: no letter that is taken for a digit, nothing that a URL escapes. */
export const base32Alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

/** `length` characters that carry five random bits each. */
export function randomBase32(length: number): string {
  let text = ''
  for (const byte of randomBytes(length)) text += base32Alphabet.charAt(byte & 31)
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
