import { supportedExtensions, supportedMimeTypes } from 'file-type'
import mime from 'mime'
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

/** Types with an optional signature: XML without a declaration, binary STL and PGP. */
const oftenUnsigned: ReadonlySet<string> = new Set([
  'application/xml',
  'text/xml',
  'model/stl',
  'application/pgp-encrypted',
])

/** The type of an item: from its bytes, otherwise from the declared type and the name (docs/interface.md U7). */
export function storedType(evidence: {
  readonly sniffed: { readonly mime: string; readonly ext: string } | null
  readonly declared: string | null
  readonly filename: string | null
}): StoredType {
  const { sniffed } = evidence
  const claimed = claimedType(evidence.declared, evidence.filename)
  if (sniffed === null) {
    return claimed !== null && !hasSignature(claimed) ? claimed : unknown
  }
  // A type that is served inline must be detected in the bytes; the declared type of a container is not enough.
  if (containers.has(sniffed.mime) && claimed !== null && !isInlineType(claimed.contentType)) return claimed
  return { contentType: sniffed.mime, extension: urlExtension(sniffed.ext) }
}

/**
 * The declared type if the extension of the name belongs to it; the type of the extension if no type is declared.
 * Null otherwise, and if the only type of the extension is application/octet-stream (`exe`, `iso`).
 */
function claimedType(declared: string | null, filename: string | null): StoredType | null {
  const extension = extensionOf(filename ?? '')
  if (extension === null) return null
  const sent = essenceOf(declared ?? '')
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
