import { Fault } from '../../core/fault.ts'
import { defaultExpiry, parseExpiry } from '../../core/item-expiry.ts'

export interface UploadMetadata {
  /** The header as it was sent. */
  readonly header: string
  /** The decoded values by key; a key without a value has an empty one. */
  readonly values: ReadonlyMap<string, string>
}

/** tus 1.0.0, Creation: "The key MUST NOT contain spaces and commas and MUST NOT be empty. The key SHOULD be ASCII encoded". */
const keyShape = /^[^ ,\P{ASCII}]+$/u

/** tus 1.0.0, Creation: "the value MUST be Base64 encoded". */
const valueShape = /^(?:[A-Za-z\d+/]{4})*(?:[A-Za-z\d+/]{2}==|[A-Za-z\d+/]{3}=)?$/

/** Parses `Upload-Metadata`, which may be empty. Throws Fault `upload-malformed`. */
export function parseMetadata(header: string): UploadMetadata {
  const values = new Map<string, string>()
  // tus 1.0.0, Creation: "The Upload-Metadata request and response header MUST consist of one or more comma-separated
  // key-value pairs."
  for (const element of header.split(',')) {
    // RFC 9110, section 5.6.1: a recipient must accept white space around the elements of a list, and ignore empty ones.
    const pair = element.trim()
    if (pair === '') continue
    // tus 1.0.0, Creation: "The key and value MUST be separated by a space. […] The value MAY be empty. In these cases, the
    // space, which would normally separate the key and the value, MAY be left out."
    const [key = '', value = '', ...more] = pair.split(' ')
    // tus 1.0.0, Creation: "All keys MUST be unique."
    if (!isKey(key) || values.has(key) || !valueShape.test(value) || more.length > 0) throw malformed()
    values.set(key, Buffer.from(value, 'base64').toString())
  }
  return { header, values }
}

/**
 * When the item of an upload expires: `expires_at` of its metadata, or the default of the bucket (docs/interface.md E1). Throws Fault
 * `upload-malformed`.
 */
export function uploadExpiry(
  metadata: UploadMetadata | null,
  itemDays: number | null,
  /** Whether the upload is created now; later, the time may have passed. */
  isNew: boolean,
): number | null {
  const text = metadata?.values.get('expires_at')
  const now = Date.now()
  if (text === undefined) return defaultExpiry(itemDays, now)
  const expiry = parseExpiry(text, isNew ? now : 0)
  if (expiry === undefined)
    throw new Fault(
      'upload-malformed',
      'expires_at in Upload-Metadata must be a time of RFC 3339 in the future, such as 2030-01-31T12:00:00Z.',
    )
  return expiry
}

/** Clients that copy pairs into an object cannot take names that every object has, such as `__proto__`. */
const isKey = (key: string): boolean => keyShape.test(key) && !(key in Object.prototype)

const malformed = () =>
  new Fault(
    'upload-malformed',
    'Upload-Metadata must be pairs of a key and a value in Base64, separated by commas; keys are unique, in ASCII and without spaces.',
  )
