import { malformed } from './form-errors.ts'

/** Each may appear once in a part. */
const single = new Set(['content-disposition', 'content-type', 'content-transfer-encoding'])

/**
 * The header fields of a part (RFC 5322, section 2.2), folded lines joined. Names are in lower case.
 * Throws Fault `form-malformed`.
 */
export function parsePartHeaders(block: string, boundary: string): ReadonlyMap<string, string> {
  const headers = new Map<string, string>()
  for (const line of block.split(/\r\n(?![ \t])/)) {
    if (line.startsWith(`--${boundary}`)) throw malformed('a boundary stands among the headers of a part')
    const unfolded = line.replace(/\r\n(?=[ \t])/g, '')
    const [, sentName, value] = /^([\w!#$%&'*+.^`|~-]+):([^\r\n]*)$/.exec(unfolded) ?? []
    if (sentName === undefined || value === undefined) throw malformed('a header of a part is malformed')
    const name = sentName.toLowerCase()
    // A quoted filename may hold any character; nothing else does.
    if (value.includes('\0') && name !== 'content-disposition')
      throw malformed('a header of a part holds NUL')
    if (single.has(name) && headers.has(name)) throw malformed(`a part has two ${name} headers`)
    headers.set(name, value.replace(/^[ \t]+|[ \t]+$/g, ''))
  }
  return headers
}
