import { supportedExtensions, supportedMimeTypes } from 'file-type'
import mime from 'mime'
import { type FileStart, withCharset } from './charset.ts'
import { extensionOf } from './filename.ts'
import { essenceOf, isInlineType } from './media-type.ts'

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
