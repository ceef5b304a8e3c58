import { isAscii, isUtf8 } from 'node:buffer'
import { supportedExtensions, supportedMimeTypes } from 'file-type'
import mime from 'mime'
import { extensionOf } from './names.ts'

/** The type of an item. `extension` has no dot and is safe in a URL; null if unknown. */
export interface StoredType {
  readonly contentType: string
  readonly extension: string | null
}

const unknown: StoredType = { contentType: 'application/octet-stream', extension: null }

/** Types that clients send if they do not know the type. curl sends the last one with a raw body. */
const undeclared: ReadonlySet<string> = new Set([
  '',
  unknown.contentType,
  'application/x-www-form-urlencoded',
])

/** Containers, whose signatures many formats share. */
const containers: ReadonlySet<string> = new Set(['application/xml', 'application/zip', 'application/x-cfb'])

/** Types with an optional signature: XML without a declaration, PostScript, binary STL and PGP. */
const oftenUnsigned: ReadonlySet<string> = new Set([
  'application/xml',
  'text/xml',
  'application/postscript',
  'model/stl',
  'application/pgp-encrypted',
])

/** What determines the type of a file. */
interface Evidence {
  readonly sniffed: { readonly mime: string; readonly ext: string } | null
  readonly declared: string | null
  readonly filename: string | null
  readonly start: FileStart
}

/** The type of an item: from its bytes, otherwise from the declared type and the name (docs/interface.md U7, U13). */
export function storedType(evidence: Evidence): StoredType {
  const { contentType, extension } = typeOf(evidence)
  return { contentType: withCharset(contentType, evidence.start, evidence.declared), extension }
}

function typeOf({ sniffed, declared, filename, start }: Evidence): StoredType {
  const claimed = claimedType(declared, filename)
  if (sniffed === null) {
    if (claimed === null) return unknown
    return !hasSignature(claimed) || (claimed.contentType === pdf && hasPdfHeader(start)) ? claimed : unknown
  }
  // A type that is served inline must be detected in the bytes; the declared type of a container is not enough.
  if (containers.has(sniffed.mime) && claimed !== null && !isInlineType(claimed.contentType)) return claimed
  return { contentType: sniffed.mime, extension: urlExtension(sniffed.ext) }
}

const pdf = 'application/pdf'

/** Readers of PDF accept up to this many bytes before the header (ISO 32000-1, implementation note 13 of Adobe). */
const maxPdfPrefix = 1_024

const hasPdfHeader = ({ head }: FileStart): boolean =>
  /%PDF-\d\.\d/.test(Buffer.from(head.subarray(0, maxPdfPrefix + '%PDF-1.7'.length)).toString('latin1'))

/**
 * The declared type if the extension of the name belongs to it, or if there is no name; the type of the extension if no type is declared.
 * Null otherwise, and if the only type of the extension is application/octet-stream (`exe`, `iso`).
 */
function claimedType(declared: string | null, filename: string | null): StoredType | null {
  const sent = essenceOf(declared ?? '')
  const extension = filename === null ? mime.getExtension(sent) : extensionOf(filename)
  if (extension === null) return null
  const contentType = undeclared.has(sent) ? mime.getType(extension) : sent
  if (contentType === null || contentType === unknown.contentType) return null
  if (mime.getAllExtensions(contentType)?.has(extension) !== true) return null
  return { contentType, extension: urlExtension(extension) }
}

/** The types that the name of a file and its declared type name. */
export function namedTypes(declared: string | null, filename: string | null): readonly string[] {
  const extension = extensionOf(filename ?? '')
  return [essenceOf(declared ?? ''), (extension && mime.getType(extension)) ?? ''].map(storedNameOf)
}

/** Whether every file of this type has a signature that is detected. */
function hasSignature({ contentType, extension }: StoredType): boolean {
  if (oftenUnsigned.has(contentType)) return false
  return supportedMimeTypes.has(contentType) || supportedExtensions.has(extension ?? '')
}

/** The last part of an extension (`gz` of `tar.gz`); null if it is not safe in a URL. */
function urlExtension(extension: string): string | null {
  const last = extension.toLowerCase().split('.').at(-1) ?? ''
  return /^[a-z0-9]{1,16}$/.test(last) ? last : null
}

/** Other names of types that the service stores by one name, which is that of the detection. */
const otherNames: Readonly<Record<string, readonly string[]>> = {
  'image/jpeg': ['image/jpg', 'image/pjpeg'],
  'image/png': ['image/x-png'],
  'image/bmp': ['image/x-bmp', 'image/x-ms-bmp'],
  'image/x-icon': ['image/ico', 'image/vnd.microsoft.icon'],
  'audio/mpeg': ['audio/mp3', 'audio/mpeg3', 'audio/x-mp3'],
  'audio/wav': ['audio/vnd.wave', 'audio/wave', 'audio/x-wav'],
  'audio/flac': ['audio/x-flac'],
  'audio/aiff': ['audio/x-aiff'],
  'audio/aac': ['audio/x-aac'],
  'audio/x-m4a': ['audio/m4a'],
  'video/vnd.avi': ['video/avi', 'video/msvideo', 'video/x-msvideo'],
  'video/matroska': ['video/x-matroska'],
  'application/gzip': ['application/x-gzip'],
  'application/pdf': ['application/x-pdf'],
  'application/rtf': ['text/rtf', 'application/x-rtf'],
  'application/x-rar-compressed': ['application/vnd.rar'],
}

const storedNames: ReadonlyMap<string, string> = new Map(
  Object.entries(otherNames).flatMap(([stored, names]) => names.map((name) => [name, stored] as const)),
)

/** The name by which the service stores files of a type, such as `image/jpeg` for `image/jpg`. */
export const storedNameOf = (type: string): string => storedNames.get(type) ?? type

/** Types that browsers display and that cannot contain scripts. SVG can contain scripts, so it is not included. */
const inlineTypes: ReadonlySet<string> = new Set([
  'image/apng',
  'image/avif',
  'image/bmp',
  'image/gif',
  'image/heic',
  'image/heic-sequence',
  'image/heif',
  'image/heif-sequence',
  'image/jpeg',
  'image/jxl',
  'image/png',
  'image/tiff',
  'image/webp',
  'image/x-icon',
  'audio/aac',
  'audio/aiff',
  'audio/flac',
  'audio/mp4',
  'audio/mpeg',
  'audio/ogg',
  'audio/wav',
  'audio/x-caf',
  'audio/x-m4a',
  'video/3gpp',
  'video/3gpp2',
  'video/matroska',
  'video/mp4',
  'video/mpeg',
  'video/ogg',
  'video/quicktime',
  'video/webm',
  'video/x-m4v',
  'application/pdf',
  'text/plain',
])

/** Whether the service lets browsers display files of this type; others are downloads (docs/interface.md B5). */
export const isInlineType = (contentType: string): boolean => inlineTypes.has(essenceOf(contentType))

/** `type/subtype` of a media type, in lower case and without parameters (RFC 9110, section 8.3.1). */
export const essenceOf = (contentType: string): string =>
  contentType.replace(/;.*$/s, '').trim().toLowerCase()

/** The charset of texts that are in none of those that are known (RFC 1428). It is stored and not sent, so that browsers detect it. */
const unknownCharset = 'unknown-8bit'

/** The start of a file: its first bytes, or all of them. */
interface FileStart {
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
function withCharset(type: string, start: FileStart, declared: string | null): string {
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
