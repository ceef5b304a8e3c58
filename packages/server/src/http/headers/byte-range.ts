/** Exactly one range; empty list members are ignored (RFC 9110, sections 14.1.2 and 5.6.1). */
const singleRange = /^bytes=[ \t,]*(?<first>[0-9]*)-(?<last>[0-9]*)[ \t,]*$/i

/** Both ends are inclusive. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/**
 * Returns the part that a Range header requests of a file of `size` bytes (docs/interface.md B3, RFC 9110, section 14).
 * Returns `whole` without a header, and for a header that section 14.2 allows to ignore: multiple ranges, other units
 * and malformed ranges.
 */
export function parseByteRange(
  header: string | undefined,
  size: number,
): ByteRange | 'whole' | 'unsatisfiable' {
  const { first, last } = singleRange.exec(header ?? '')?.groups ?? {}
  if (first === undefined || last === undefined) return 'whole'
  if (first === '') return last === '' ? 'whole' : suffixRange(Number(last), size)
  // Compared as BigInt: `last` may be less than `first` although both round to the same double.
  if (last !== '' && BigInt(last) < BigInt(first)) return 'whole'
  const start = Number(first)
  if (start >= size) return 'unsatisfiable'
  return { start, end: last === '' ? size - 1 : Math.min(Number(last), size - 1) }
}

/** A suffix of an empty file is satisfiable, but Content-Range cannot express it, so it returns `whole`. */
function suffixRange(length: number, size: number): ByteRange | 'whole' | 'unsatisfiable' {
  if (length === 0) return 'unsatisfiable'
  if (size === 0) return 'whole'
  return { start: Math.max(0, size - length), end: size - 1 }
}
