import { Fault } from '../core/faults.ts'

/** A string of RFC 8941, as the draft requires. */
const quoted = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])+)"$/

/** What most clients send. A quote begins a string, a comma separates two keys, and a semicolon begins parameters. */
const bare = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x7e]+$/

/** Characters of an Idempotency-Key. */
const maxKeyLength = 255

/** Returns the key of an Idempotency-Key header; quoted and bare forms are the same key (docs/interface.md I1). Throws Fault. */
export function parseIdempotencyKey(header: string): string {
  const key = quoted.exec(header)?.[1]?.replace(/\\(.)/g, '$1') ?? bare.exec(header)?.[0]
  if (key === undefined || key.length > maxKeyLength)
    throw new Fault(
      'idempotency-key-malformed',
      `Idempotency-Key must be one quoted string, or one word without quotes, commas and semicolons, of 1 to ${maxKeyLength} ASCII characters.`,
    )
  return key
}
