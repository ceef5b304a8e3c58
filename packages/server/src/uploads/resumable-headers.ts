import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { Fault } from '../core/faults.ts'
import { focusTextRule, parseFocusText } from '../core/focus.ts'
import { type Labels, labelRule, parseLabelText } from '../core/item-labels.ts'
import { parseExpiry } from '../core/times.ts'
import type { Grant } from '../storage/catalog/records.ts'
import { defaultExpiry, statedExpiry } from './new-items.ts'

/** The headers of a request that describe an upload or a chunk; null or false where they are absent. */
export interface UploadHeaders {
  readonly checksum: Checksum | null
  readonly offset: number | null
  readonly length: number | null
  readonly isLengthDeferred: boolean
  readonly metadata: UploadMetadata | null
  readonly concat: string | null
}

/** Parses the headers of a request, used by its method or not. Throws Fault `upload-malformed` and `checksum-malformed`. */
export function parseUploadHeaders(headers: IncomingHttpHeaders): UploadHeaders {
  function parse<T>(name: string, parser: (value: string, name: string) => T): T | null {
    const value = headers[name.toLowerCase()]
    return value === undefined ? null : parser(value.toString(), name)
  }
  return {
    checksum: parse('Upload-Checksum', parseChecksum),
    offset: parse('Upload-Offset', parseByteCount),
    length: parse('Upload-Length', parseByteCount),
    isLengthDeferred: parse('Upload-Defer-Length', parseDeferLength) ?? false,
    metadata: parse('Upload-Metadata', parseMetadata),
    concat: parse('Upload-Concat', parseConcat),
  }
}

/** tus 1.0.0, Core, Upload-Offset and Upload-Length: "The value MUST be a non-negative integer." */
export function parseByteCount(value: string, name: string): number {
  const count = Number(value)
  // Without leading zeros, and only numbers that are represented exactly.
  if (!/^\d+$/.test(value) || String(count) !== value)
    throw new Fault('upload-malformed', `${name} must be a whole number of bytes in plain digits.`)
  return count
}

/** tus 1.0.0, Creation: "Its value MUST be 1." and "any other value than 1 the server should return a 400 Bad Request status". */
export function parseDeferLength(value: string): true {
  if (value !== '1') throw new Fault('upload-malformed', 'Upload-Defer-Length must be 1.')
  return true
}

/** tus 1.0.0, Concatenation: "the header value MUST be partial", or "final followed by a semicolon" and a list of URLs. */
export function parseConcat(value: string): string {
  if (value !== 'partial' && !value.startsWith('final;'))
    throw new Fault('upload-malformed', 'Upload-Concat must be partial, or final; and a list of URLs.')
  return value
}

/** Bytes of a checksum. tus 1.0.0, Checksum: "The Server MUST support at least the SHA1 checksum algorithm". */
const sizes = { sha1: 20, sha256: 32 }

export const checksumAlgorithms = Object.keys(sizes)

export interface Checksum {
  readonly algorithm: keyof typeof sizes
  readonly value: Buffer
}

/** Parses `Upload-Checksum`. Throws Fault `checksum-malformed`. */
export function parseChecksum(header: string): Checksum {
  // tus 1.0.0, Checksum: "The header MUST consist of the name of the used checksum algorithm and the Base64 encoded
  // checksum separated by a space."
  const [name = '', encoded = '', ...more] = header.split(' ')
  const algorithm = isAlgorithm(name) ? name : null
  const value = Buffer.from(encoded, 'base64')
  // tus 1.0.0, Checksum: "400 Bad Request if the checksum algorithm is not supported by the server".
  if (
    algorithm === null ||
    more.length > 0 ||
    value.toString('base64') !== encoded ||
    value.length !== sizes[algorithm]
  )
    throw new Fault(
      'checksum-malformed',
      `Upload-Checksum must be one of ${checksumAlgorithms.join(', ')}, a space, and the checksum in Base64.`,
      { members: { accepted: checksumAlgorithms } },
    )
  return { algorithm, value }
}

/** tus 1.0.0, Checksum: "The names of the checksum algorithms MUST only consist of ASCII characters" without capitals. */
const isAlgorithm = (name: string): name is Checksum['algorithm'] => Object.hasOwn(sizes, name)

/** The source, which throws Fault `checksum-mismatch` at its end if its bytes have another checksum. */
export async function* verifyChecksum(
  source: AsyncIterable<Uint8Array>,
  { algorithm, value }: Checksum,
): AsyncGenerator<Uint8Array, void, void> {
  const hash = createHash(algorithm)
  for await (const bytes of source) {
    hash.update(bytes)
    yield bytes
  }
  // tus 1.0.0, Checksum: "Once the entire request has been received, the Server MUST verify the uploaded chunk against the
  // provided checksum".
  if (!hash.digest().equals(value))
    throw new Fault(
      'checksum-mismatch',
      `The ${algorithm} of the received bytes is not that of Upload-Checksum.`,
    )
}

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
    if (!isKey(key) || values.has(key) || !valueShape.test(value) || more.length > 0)
      throw malformedMetadata()
    values.set(key, Buffer.from(value, 'base64').toString())
  }
  return { header, values }
}

/**
 * When the item of an upload expires: `expires_at` of its metadata, or the default of the bucket (docs/interface.md E1). Throws Fault
 * `upload-malformed`.
 */
export function itemExpiryOfMetadata(
  metadata: UploadMetadata | null,
  { itemDays, limits }: Pick<Grant, 'itemDays' | 'limits'>,
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
  return statedExpiry(expiry, limits, now)
}

/** The labels of the item of an upload: `labels` of its metadata, a JSON object; null for none. Throws Fault `upload-malformed`. */
export function labelsOfMetadata(metadata: UploadMetadata | null): Labels | null {
  const text = metadata?.values.get('labels')
  const labels = text === undefined ? null : parseLabelText(text)
  if (labels === undefined)
    throw new Fault('upload-malformed', `labels in Upload-Metadata must be a JSON object with ${labelRule}.`)
  return labels
}

/** The focus of the item of an upload: `focus` of its metadata; null for none. Throws Fault `upload-malformed`. */
export function focusOfMetadata(metadata: UploadMetadata | null): number | null {
  const text = metadata?.values.get('focus')
  const focus = text === undefined ? null : parseFocusText(text)
  if (focus === undefined)
    throw new Fault('upload-malformed', `focus in Upload-Metadata must be ${focusTextRule}.`)
  return focus
}

/** Clients that copy pairs into an object cannot take names that every object has, such as `__proto__`. */
const isKey = (key: string): boolean => keyShape.test(key) && !(key in Object.prototype)

const malformedMetadata = () =>
  new Fault(
    'upload-malformed',
    'Upload-Metadata must be pairs of a key and a value in Base64, separated by commas; keys are unique, in ASCII and without spaces.',
  )
