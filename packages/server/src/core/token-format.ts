import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { base32Alphabet, base32Of, randomBase32 } from './base32.ts'

const prefix = 'mbkt_'
const secretLength = 32
const checksumLength = 6
const shape = new RegExp(`^${prefix}[${base32Alphabet}]{${secretLength + checksumLength}}$`)

/** A token of 160 random bits (docs/interface.md A8). Shown once; only its hash is stored. */
export function newToken(): string {
  const unsigned = prefix + randomBase32(secretLength)
  return unsigned + checksum(unsigned)
}

/** Whether the format and the checksum are correct: distinguishes a mistyped token from an unknown one. */
export function isWellFormedToken(text: string): boolean {
  return shape.test(text) && checksum(text.slice(0, -checksumLength)) === text.slice(-checksumLength)
}

/** SHA-256, 32 bytes. 160 random bits need no salt and no slow hash. Node.js returns the hash faster as text. */
export const hashToken = (token: string): Uint8Array => Buffer.from(hash('sha256', token, 'binary'), 'binary')

/** The low 30 bits of the CRC-32, which detect any one changed character. */
const checksum = (text: string): string => base32Of(crc32(text), checksumLength)
