import { isAscii, isUtf8 } from 'node:buffer'

/** The charset of texts that are in none of those that are known (RFC 1428). It is stored and not sent, so that browsers detect it. */
const unknownCharset = 'unknown-8bit'

/** The start of a file: its first bytes, or all of them. */
export interface FileStart {
  readonly head: Uint8Array
  /** Of the file. Bytes. */
  readonly size: number
}

/** Bytes of text in any encoding that contains ASCII: all but NUL, DEL and the control characters that no text has. */
export const isTextByte = (byte: number): boolean =>
  byte >= 0x20 ? byte !== 0x7f : (byte >= 0x07 && byte <= 0x0d) || byte === 0x1b

/** A loop, because `every` calls a function for each byte. */
function isText(bytes: Uint8Array): boolean {
  for (let i = 0; i < bytes.byteLength; i += 1) if (!isTextByte(bytes[i] ?? 0)) return false
  return true
}

/** The encoding of a text that begins with the byte order mark of UTF-16. */
function wideEncodingOf(head: Uint8Array): 'utf-16le' | 'utf-16be' | null {
  if (head[0] === 0xfe && head[1] === 0xff) return 'utf-16be'
  // SketchUp models begin with the mark and a length.
  if (head[0] === 0xff && head[1] === 0xfe && !(head[2] === 0xff && head[3] === 0x0e)) return 'utf-16le'
  return null
}

/** The most bytes of a file that are examined. */
const examined = 4_100

/**
 * The start of a text, without its byte order mark; null if the bytes are no text. Every byte of an encoding that contains ASCII is one
 * character of the result.
 */
export function decodeText(bytes: Uint8Array): string | null {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, examined))
  const encoding = wideEncodingOf(head)
  if (encoding !== null) {
    const text = new TextDecoder(encoding).decode(head)
    for (let i = 0; i < text.length; i += 1) if (!isTextByte(text.charCodeAt(i))) return null
    return text
  }
  // Decoders of pictures read these files by their markers, whatever follows.
  if (head[0] === 0xff && head[1] === 0xd8 && head[2] === 0xff) return null
  if (!isText(head)) return null
  const hasMark = head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf
  return head.toString('latin1', hasMark ? 3 : 0)
}

/**
 * A type of text with the charset of the file (docs/interface.md U13): from its bytes, otherwise as declared. UTF-8 is not stated. All other
 * types are returned unchanged.
 */
export function withCharset(type: string, start: FileStart, declared: string | null): string {
  if (!type.startsWith('text/')) return type
  const charset = charsetOf(start, declared)
  return charset === null ? type : `${type}; charset=${charset}`
}

/** Null for UTF-8, and for bytes that are no text. */
function charsetOf({ head, size }: FileStart, declared: string | null): string | null {
  // RFC 2781: `utf-16` has a byte order mark, `utf-16le` and `utf-16be` have none.
  if (wideEncodingOf(head) !== null) return 'utf-16'
  const label = declaredCharset(declared)
  // The head may end within a character of up to four bytes.
  const cuts = size > head.byteLength ? [0, 1, 2, 3] : [0]
  if (!cuts.some((cut) => isUtf8(head.subarray(0, head.byteLength - cut))))
    return label ?? (isText(head) ? unknownCharset : null)
  // Only UTF-8 has valid sequences of several bytes, apart from accidents. ASCII is valid in nearly all charsets.
  return isAscii(head) ? label : null
}

/** The charset parameter, if browsers know it; null for UTF-8. */
function declaredCharset(declared: string | null): string | null {
  const label = /;\s*charset\s*=\s*"?([\w.:+-]{1,40})"?\s*(?:;|$)/i.exec(declared ?? '')?.[1]?.toLowerCase()
  if (label === undefined) return null
  try {
    return new TextDecoder(label).encoding === 'utf-8' ? null : label
  } catch {
    return null
  }
}

/** The `Content-Type` in which a stored type of text is sent. */
export function sentTextType(contentType: string): string {
  const [type = '', charset] = contentType.split('; charset=')
  if (charset === undefined) return `${type}; charset=utf-8`
  return charset === unknownCharset ? type : contentType
}
