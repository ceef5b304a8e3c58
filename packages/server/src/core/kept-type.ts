import { supportedExtensions, supportedMimeTypes } from 'file-type'
import mime from 'mime'
import { deliveryOf, essenceOf } from './delivery.ts'
import { extensionOf } from './filename.ts'

/** What an item is kept as; `extension` is without its dot and safe in a URL, null where none is known. */
export interface KeptType {
  readonly contentType: string
  readonly extension: string | null
}

const unknown: KeptType = { contentType: 'application/octet-stream', extension: null }

/** Signatures that many formats share: they tell the wrapping, not the kind. */
const containers: ReadonlySet<string> = new Set(['application/xml', 'application/zip', 'application/x-cfb'])

/** Types with a signature that not every file of them has: XML without its declaration, binary STL and PGP. */
const oftenUnsigned: ReadonlySet<string> = new Set([
  'application/xml',
  'text/xml',
  'model/stl',
  'application/pgp-encrypted',
])

/** The type of an item: what its bytes show, else what was declared, if that holds (docs/interface.md U7). */
export function keptType(evidence: {
  readonly sniffed: { readonly mime: string; readonly ext: string } | null
  readonly declared: string | null
  readonly filename: string | null
}): KeptType {
  const { sniffed } = evidence
  const claimed = claimedType(evidence.declared, evidence.filename)
  if (sniffed === null) {
    return claimed !== null && !wouldShow(claimed) ? claimed : unknown
  }
  // What is shown in place must be seen in the bytes: a claim never makes a container such a type.
  if (containers.has(sniffed.mime) && claimed !== null && !isInline(claimed.contentType)) return claimed
  return { contentType: sniffed.mime, extension: urlExtension(sniffed.ext) }
}

/**
 * The declared type with the name's extension, null unless the one belongs to the other. No extension belongs to
 * curl's application/x-www-form-urlencoded, and those of application/octet-stream (`exe`, `iso`) tell no type.
 */
function claimedType(declared: string | null, filename: string | null): KeptType | null {
  const contentType = essenceOf(declared ?? '')
  const extension = extensionOf(filename ?? '')
  if (contentType === unknown.contentType || extension === null) return null
  if (mime.getAllExtensions(contentType)?.has(extension) !== true) return null
  return { contentType, extension: urlExtension(extension) }
}

/** Whether bytes of this type would have been recognised: a PNG without PNG's signature is none. */
function wouldShow({ contentType, extension }: KeptType): boolean {
  if (oftenUnsigned.has(contentType)) return false
  return supportedMimeTypes.has(contentType) || supportedExtensions.has(extension ?? '')
}

const isInline = (contentType: string): boolean => deliveryOf(contentType).disposition === 'inline'

/** Of a double extension (`tar.gz`) the last; null when it is not fit for a URL. */
function urlExtension(extension: string): string | null {
  const last = extension.toLowerCase().split('.').at(-1) ?? ''
  return /^[a-z0-9]{1,16}$/.test(last) ? last : null
}
