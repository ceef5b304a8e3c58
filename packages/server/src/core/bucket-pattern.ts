import { hash } from 'node:crypto'

/** The name of a bucket with one value of a claim: `user-{sub}`. */
export interface BucketPattern {
  readonly prefix: string
  /** As in `readClaim`. */
  readonly claim: string
  readonly suffix: string
}

/** The maximum length of a bucket name. */
const maxName = 63

/** Leaves 43 characters for the value, the length of a hashed one. */
const maxFixedPart = 20

const shape = /^(?<prefix>(?:[a-z0-9][a-z0-9-]*)?)\{(?<claim>[^{}\s]+)\}(?<suffix>[a-z0-9-]*)$/

/**
 * Parses the setting; null if it is malformed. It has exactly one claim, because two could be combined in several ways to the same name.
 * A pattern with `sub` has a prefix, so that no subject is called like a bucket of the operator.
 */
export function parseBucketPattern(text: string): BucketPattern | null {
  const { prefix = '', claim: named = '', suffix = '' } = shape.exec(text)?.groups ?? {}
  // The JSON Pointer to a claim at the top is the claim.
  const claim = named.replace(/^\/([^/~]+)$/, '$1')
  if (claim === '' || prefix.length + suffix.length > maxFixedPart) return null
  return claim === 'sub' && prefix === '' ? null : { prefix, claim, suffix }
}

/** A part of a bucket name that is no escaped and no hashed value: without two hyphens in a row. */
const plain = /^[a-z0-9]+(?:-[a-z0-9]+)*$/

/**
 * Returns the name of the bucket for the value of the claim; null if the value is empty, longer than 255 characters or no text. Different
 * values have different names: values of lower-case letters, digits and single hyphens stay as they are; in others every other byte is
 * written as a hyphen and two hexadecimal digits, after `x--`; what is then too long becomes `h--` and 160 bits of its SHA-256.
 */
export function bucketNameFor({ prefix, suffix }: BucketPattern, value: unknown): string | null {
  if (typeof value !== 'string' || value === '' || value.length > 255 || !value.isWellFormed()) return null
  const room = maxName - prefix.length - suffix.length
  if (plain.test(value) && value.length <= room) return prefix + value + suffix
  const escaped = `x--${[...Buffer.from(value)].map(escapeByte).join('')}`
  if (escaped.length <= room) return prefix + escaped + suffix
  return `${prefix}h--${hash('sha256', value).slice(0, 40)}${suffix}`
}

function escapeByte(byte: number): string {
  const letter = String.fromCharCode(byte)
  return /^[a-z0-9]$/.test(letter) ? letter : `-${byte.toString(16).padStart(2, '0')}`
}
