import { supportedExtensions, supportedMimeTypes } from 'file-type'
import mime from 'mime'
import { extensionOf } from './filename.ts'
import { essenceOf, isInlineType } from './media-type.ts'

/** The type of an item; `extension` is without its dot and safe in a URL, null where none is known. */
export interface StoredType {
  readonly contentType: string
  readonly extension: string | null
}

const unknown: StoredType = { contentType: 'application/octet-stream', extension: null }

/** What clients send where they know no type. curl sends the second with a raw body. */
const undeclared: ReadonlySet<string> = new Set([
  '',
  unknown.contentType,
  'application/x-www-form-urlencoded',
])

/** Signatures of containers, which many formats share. */
const containers: ReadonlySet<string> = new Set(['application/xml', 'application/zip', 'application/x-cfb'])

/** Types with a signature that not every file of them has: XML without its declaration, binary STL and PGP. */
const oftenUnsigned: ReadonlySet<string> = new Set([
  'application/xml',
  'text/xml',
  'model/stl',
  'application/pgp-encrypted',
])

/** The type of an item: from its bytes, else from the declared type and the name (docs/interface.md U7). */
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
  // A type that is served inline must show in the bytes: a claim never makes a container such a type.
  if (containers.has(sniffed.mime) && claimed !== null && !isInlineType(claimed.contentType)) return claimed
  return { contentType: sniffed.mime, extension: urlExtension(sniffed.ext) }
}

/**
 * The declared type where the name's extension is one of its extensions; the type of the extension where none is declared.
 * Null otherwise, and where the extension has no type but application/octet-stream (`exe`, `iso`).
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

/** Whether the bytes of every file of this type would have been recognised. */
function hasSignature({ contentType, extension }: StoredType): boolean {
  if (oftenUnsigned.has(contentType)) return false
  return supportedMimeTypes.has(contentType) || supportedExtensions.has(extension ?? '')
}

/** Of a double extension (`tar.gz`) the last; null when it is not fit for a URL. */
function urlExtension(extension: string): string | null {
  const last = extension.toLowerCase().split('.').at(-1) ?? ''
  return /^[a-z0-9]{1,16}$/.test(last) ? last : null
}
