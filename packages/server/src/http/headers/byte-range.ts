/** Exactly one range; a list's empty members are let pass (RFC 9110, sections 14.1.2 and 5.6.1). */
const singleRange = /^bytes=[ \t,]*(?<first>[0-9]*)-(?<last>[0-9]*)[ \t,]*$/i

/** Both ends inclusive. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/**
 * What of `size` bytes a Range header asks for (docs/interface.md B3, RFC 9110, section 14). Several ranges and
 * whatever is no byte range are ignored, as section 14.2 allows: the answer is the whole.
 */
export function parseByteRange(
  header: string | undefined,
  size: number,
): ByteRange | 'whole' | 'unsatisfiable' {
  const { first, last } = singleRange.exec(header ?? '')?.groups ?? {}
  if (first === undefined || last === undefined) return 'whole'
  if (first === '') return last === '' ? 'whole' : suffix(Number(last), size)
  // BigInt, because rounded to doubles a malformed range could pass for a well-formed one.
  if (last !== '' && BigInt(last) < BigInt(first)) return 'whole'
  const start = Number(first)
  if (start >= size) return 'unsatisfiable'
  return { start, end: last === '' ? size - 1 : Math.min(Number(last), size - 1) }
}

/** The last bytes of an empty file are satisfiable, but no Content-Range can name them: the whole, then. */
function suffix(length: number, size: number): ByteRange | 'whole' | 'unsatisfiable' {
  if (length === 0) return 'unsatisfiable'
  if (size === 0) return 'whole'
  return { start: Math.max(0, size - length), end: size - 1 }
}
