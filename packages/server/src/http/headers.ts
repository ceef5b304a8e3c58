import { hash } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { decodeExtended } from 'content-disposition'
import { Fault, type FaultCode } from '../core/faults.ts'
import { METHODS } from '../core/node-http.ts'
import type { NegotiatedFormat } from '../core/variant-sizes.ts'

/** Returns how many times the request has a header. `name` is lower-case. Node drops repeated fields from `request.headers`. */
export function countHeader(request: IncomingMessage, name: string): number {
  let count = 0
  for (let i = 0; i < request.rawHeaders.length; i += 2) {
    const sent = request.rawHeaders[i]
    if (sent?.length === name.length && sent.toLowerCase() === name) count += 1
  }
  return count
}

/** Returns the one Authorization header (docs/interface.md A4). Throws Fault where there is none or more than one. */
export function requireAuthorization(request: IncomingMessage): string {
  const header = request.headers.authorization
  if (header === undefined)
    throw new Fault('token-missing', 'Send the header `Authorization: Bearer` with a token of this bucket.')
  if (countHeader(request, 'authorization') > 1)
    throw new Fault(
      'authorization-repeated',
      'The request has more than one Authorization header; send exactly one.',
    )
  return header
}

/** The header in which requests name a bucket, as `Vary` has it. */
export const bucketHeader = 'Mediabucket-Bucket'

/** The bucket that the request names (docs/interface.md ST2); undefined without the header. Repeated headers name none that exists. */
export const namedBucket = ({ headers }: IncomingMessage): string | undefined =>
  headers['mediabucket-bucket']?.toString()

/** Everything after the scheme is the token, spaces included: a token with spaces is malformed, not missing. */
const credentials = /^bearer +(\S.*)$/i

/** Returns the token of an Authorization header (docs/interface.md A1, A2). Throws Fault where it has none. */
export function parseBearerToken(authorization: string): string {
  const token = credentials.exec(authorization)?.[1]
  if (token === undefined)
    throw new Fault('token-missing', 'The Authorization header must have the form `Bearer` and a token.')
  return token
}

/**
 * Throws Fault unless the request has exactly one Host header (RFC 9112, section 3.2). HTTP/1.0 requests may omit it.
 * Node's own check accepts a repeated Host.
 */
export function requireHostHeader(request: IncomingMessage): void {
  const count = countHeader(request, 'host')
  if (count > 1) throw new Fault('request-malformed', 'The request has more than one Host header.')
  if (count === 0 && request.httpVersion !== '1.0')
    throw new Fault('request-malformed', 'The request has no Host header.')
}

/** The largest number of headers of a request. */
export const maxHeaders = 100

/** Node's parser also knows the methods of RTSP. */
const methods: ReadonlySet<string> = new Set(METHODS)

/** The detail of the problem `http-version-unsupported`. */
export const supportedVersions = 'The service supports HTTP/1.1 and HTTP/1.0 only.'

/** Why a request that Node's parser accepts is not valid HTTP/1.1 or HTTP/1.0 (docs/interface.md N4); null if it is. */
export function protocolFault(request: IncomingMessage): Fault | null {
  const { httpVersionMajor, httpVersionMinor, method = '', url = '', rawHeaders, headers } = request
  if (httpVersionMajor !== 1) return new Fault('http-version-unsupported', supportedVersions)
  if (!methods.has(method))
    return new Fault('method-unsupported', 'No operation of the service uses this method.')
  if (!url.startsWith('/') && !isAbsoluteOrAsterisk(method, url))
    return new Fault('request-malformed', 'The target of the request must be a path or an http URL.')
  if (rawHeaders.length > 2 * maxHeaders)
    return new Fault('headers-too-large', `A request may have at most ${maxHeaders} headers.`)
  const coding = headers['transfer-encoding']
  if (coding === undefined) return null
  // RFC 9112, section 6.1: this framing is faulty.
  if (httpVersionMinor === 0)
    return new Fault('request-malformed', 'An HTTP/1.0 request cannot have a Transfer-Encoding.')
  if (coding.toLowerCase() === 'chunked') return null
  return new Fault('transfer-coding-unsupported', 'Send the body with Transfer-Encoding: chunked alone.')
}

const isAbsoluteOrAsterisk = (method: string, url: string): boolean =>
  /^https?:\/\//i.test(url) || (url === '*' && method === 'OPTIONS')

/** The headers of responses that no cache stores. */
export const noStore = { 'cache-control': 'no-store' } as const

/** A fault whose problem has headers of its own. */
export class HeaderFault extends Fault {
  readonly headers: Readonly<Record<string, string>>

  constructor(code: FaultCode, detail: string, headers: Readonly<Record<string, string>>) {
    super(code, detail)
    this.headers = headers
  }
}

const token = "[\\w!#$%&'*+.^`|~-]+"
const start = new RegExp(`[ \\t]*(${token}(?:/${token})?)[ \\t]*`, 'y')
const next = new RegExp(
  `;[ \\t]*(?:(${token})[ \\t]*=[ \\t]*(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;"]+))[ \\t]*)?`,
  'sy',
)

/** A header of the form `value; name=value; name="value"`, such as Content-Type or Content-Disposition. */
export interface ParameterisedValue {
  /** In lower case. */
  readonly value: string
  /** Keyed by names in lower case. */
  readonly parameters: ReadonlyMap<string, string>
}

/** Returns null where the header is malformed or repeats a parameter. */
export function parseParameters(header: string): ParameterisedValue | null {
  start.lastIndex = 0
  const value = start.exec(header)?.[1]?.toLowerCase()
  if (value === undefined) return null
  const parameters = new Map<string, string>()
  for (next.lastIndex = start.lastIndex; next.lastIndex < header.length; ) {
    const match = next.exec(header)
    if (match === null) return null
    const [, name, quoted, plain = ''] = match
    if (name === undefined) continue
    if (parameters.has(name.toLowerCase())) return null
    parameters.set(name.toLowerCase(), quoted === undefined ? plain : unquote(quoted))
  }
  return { value, parameters }
}

/** Unescapes only `\"` and `\\` of RFC 9110, section 5.6.4, because some clients send unescaped Windows paths. */
const unquote = (text: string): string => text.replace(/\\(["\\])/g, '$1')

/** The filename of a Content-Disposition header: null without one, undefined where `filename*` is malformed. */
export function dispositionFilename({ parameters }: ParameterisedValue): string | null | undefined {
  const extended = parameters.get('filename*')
  if (extended !== undefined) return decodeExtended(extended)
  return decodeUtf8(parameters.get('filename'))
}

/** Only characters that Latin-1 and UTF-8 encode equally. */
const ascii = /^[\x20-\x7e]*$/

/** Node decodes headers as Latin-1, but clients such as curl send UTF-8. */
function decodeUtf8(text: string | undefined): string | null {
  if (text === undefined) return null
  if (ascii.test(text)) return text
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'latin1'))
  } catch {
    return text
  }
}

/** The media ranges of an Accept header, in lower case, with their weights. */
function rangesOf(accept: string | undefined): (readonly [name: string, weight: number])[] {
  return (accept ?? '').split(',').map((range) => {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    const [weight = 1] = parameters.flatMap((text) => /^q\s*=\s*(\d(?:\.\d*)?)$/.exec(text)?.[1] ?? [])
    return [name, Number(weight)]
  })
}

/**
 * The weight (RFC 9110, section 12.4.2) that an Accept header gives to a media type; 0 if it does not name it. Ranges such as `text/*` do
 * not name it.
 */
export function weightOf(accept: string | undefined, type: string): number {
  return Math.max(0, ...rangesOf(accept).flatMap(([name, weight]) => (name === type ? [weight] : [])))
}

/** Whether an Accept header names the media type, with a weight above 0. */
export const namesType = (accept: string | undefined, type: string): boolean => weightOf(accept, type) > 0

/** Longer Accept headers are read for each request. */
const [maxKnown, maxKnownLength] = [100, 300]

/**
 * Returns a function that chooses the format of a variant by an Accept header: AVIF if the header names it with a weight that is not
 * below that of WebP, otherwise WebP. Clients send few different headers, so it remembers them.
 */
export function createFormatChoice(): (accept: string | undefined) => NegotiatedFormat {
  const known = new Map<string, NegotiatedFormat>()
  let last: string | undefined
  let lastFormat: NegotiatedFormat = 'webp'

  function formatOf(accept: string): NegotiatedFormat {
    const found = known.get(accept)
    if (found) return found
    const weight = weightOf(accept, 'image/avif')
    const names = rangesOf(accept).map(([name]) => name)
    // The most specific range applies (RFC 9110, section 12.5.1).
    const webp = ['image/webp', 'image/*', '*/*'].find((type) => names.includes(type))
    const webpWeight = webp === undefined ? 0 : weightOf(accept, webp)
    const format = weight > 0 && weight >= webpWeight ? 'avif' : 'webp'
    if (known.size < maxKnown && accept.length <= maxKnownLength) known.set(accept, format)
    return format
  }

  return (accept) => {
    if (accept === last) return lastFormat
    lastFormat = accept === undefined ? 'webp' : formatOf(accept)
    last = accept
    return lastFormat
  }
}

/** Whether an Accept-Encoding header allows the coding, and does not prefer none (RFC 9110, section 12.5.3); false without the header. */
export function acceptsCoding(header: string | undefined, coding: 'gzip' | 'br'): boolean {
  if (header === undefined) return false
  const weights = new Map(
    header.split(',').map((item) => {
      const [name = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase())
      const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
      return [name, weight === undefined ? 1 : Number(weight)]
    }),
  )
  const weight = weights.get(coding) ?? weights.get(`x-${coding}`) ?? weights.get('*') ?? 0
  return weight > 0 && weight >= (weights.get('identity') ?? 0)
}

/** Fetch destinations for which a browser runs a response, applies it as a style sheet or installs it. */
const codeDestinations: ReadonlySet<string> = new Set([
  'audioworklet',
  'json',
  'manifest',
  'paintworklet',
  'script',
  'serviceworker',
  'sharedstorageworklet',
  'sharedworker',
  'speculationrules',
  'style',
  'webbundle',
  'worker',
  'xslt',
])

/** Whether a browser requests bytes to run them. Browsers send Sec-Fetch-Dest with every request, and pages cannot change it. */
function refusesDestination(headers: IncomingHttpHeaders): boolean {
  const destination = headers['sec-fetch-dest']
  return typeof destination === 'string' && codeDestinations.has(destination.trim().toLowerCase())
}

/** Throws Fault `destination-refused` where a browser requests bytes to run them, from any site (docs/interface.md B10). */
export function refuseCodeDestination(headers: IncomingHttpHeaders): void {
  if (refusesDestination(headers))
    throw new Fault('destination-refused', `Bytes of items are not served as ${headers['sec-fetch-dest']}.`)
}

/** Throws Fault `destination-refused` where a browser fetches a service worker; the service has none. */
export function refuseServiceWorker(headers: IncomingHttpHeaders): void {
  if (headers['service-worker'] !== undefined)
    throw new Fault('destination-refused', 'This service has no service worker.')
}

/** One member of a list of entity tags (RFC 9110, sections 8.8.3 and 5.6.1). Sticky, so that parsing takes linear time. */
const listMember = /[ \t,]*(?<weak>W\/)?(?<opaque>"[\x21\x23-\x7e\x80-\xff]*")[ \t]*(?=,|$)/y

/** Whether If-None-Match contains `tag`, by weak comparison (RFC 9110, section 13.1.2). `*` matches every tag. */
export function matchesWeakly(header: string, tag: string): boolean {
  const opaque = tag.startsWith('W/') ? tag.slice(2) : tag
  return anyTagMatches(header, (found) => found === opaque)
}

/** Whether If-Match contains `tag`, by strong comparison (RFC 9110, section 13.1.1). `*` matches every tag. */
export function matchesStrongly(header: string, tag: string): boolean {
  return anyTagMatches(header, (found, weak) => !weak && found === tag)
}

/** Parsing stops at the first malformed member; later tags match nothing. */
function anyTagMatches(header: string, matches: (opaque: string, weak: boolean) => boolean): boolean {
  if (header.trim() === '*') return true
  const tag = new RegExp(listMember)
  for (let found = tag.exec(header); found !== null; found = tag.exec(header)) {
    if (matches(found.groups?.['opaque'] ?? '', found.groups?.['weak'] !== undefined)) return true
  }
  return false
}

/** The part of an entity tag that identifies what determines a representation. 16 characters. */
export const fingerprintOf = (values: readonly unknown[]): string =>
  hash('sha256', JSON.stringify(values), 'base64url').slice(0, 16)

/**
 * The entity tag with quotes, and the time of the last change in milliseconds since 1970. Null if this is unknown: conditions with dates are
 * ignored then (RFC 9110, sections 13.1.3 and 13.1.4).
 */
export interface Validators {
  readonly etag: string
  readonly lastModified: number | null
}

/** The conditional headers; Node's IncomingHttpHeaders are assignable. */
export type PreconditionHeaders = Readonly<
  Partial<
    Record<
      'if-match' | 'if-none-match' | 'if-modified-since' | 'if-unmodified-since' | 'if-range',
      string | undefined
    >
  >
>

/** Evaluates the preconditions of a GET or HEAD of an existing item in the order of RFC 9110, section 13.2.2 (docs/interface.md B4). */
export function checkPreconditions(
  headers: PreconditionHeaders,
  validators: Validators,
): 'proceed' | 'not-modified' | 'failed' {
  const { lastModified } = validators
  const modified = lastModified === null ? null : seconds(lastModified)

  const ifMatch = headers['if-match']
  if (ifMatch !== undefined) {
    if (!matchesStrongly(ifMatch, validators.etag)) return 'failed'
  } else {
    const since = parseHttpDate(headers['if-unmodified-since'])
    if (since !== null && modified !== null && modified > since) return 'failed'
  }

  const ifNoneMatch = headers['if-none-match']
  if (ifNoneMatch !== undefined) {
    if (matchesWeakly(ifNoneMatch, validators.etag)) return 'not-modified'
  } else {
    const since = parseHttpDate(headers['if-modified-since'])
    if (since !== null && modified !== null && modified <= since) return 'not-modified'
  }

  return 'proceed'
}

/**
 * Whether the Range header applies (RFC 9110, section 13.1.5): always without If-Range, otherwise only where If-Range
 * matches. Only bytes that never change have a date, so it is a strong validator.
 */
export function rangeApplies(ifRange: string | undefined, { etag, lastModified }: Validators): boolean {
  if (ifRange === undefined) return true
  // If-Range allows neither a list nor `*`, and a weak tag never matches.
  if (ifRange.startsWith('"')) return ifRange === etag
  return lastModified !== null && parseHttpDate(ifRange) === seconds(lastModified)
}

/** HTTP dates have whole seconds. */
const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1000)

/**
 * Seconds since 1970; null for anything but the three forms of RFC 9110, section 5.6.7. Date.parse alone accepts any text; an ignored date
 * only costs a full response.
 */
function parseHttpDate(text: string | undefined): number | null {
  if (text === undefined) return null
  const date = fixdateOf(text)
  const time = new Date(date)
  return !Number.isNaN(time.valueOf()) && time.toUTCString() === date ? seconds(time.valueOf()) : null
}

/** `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`. */
const rfc850Date = /^(\w{3})(?:|s|nes|rs|ur)day, (\d\d)-(\w{3})-(\d\d) (\d\d:\d\d:\d\d) GMT$/
const asctimeDate = /^(\w{3}) (\w{3}) ([ \d]\d) (\d\d:\d\d:\d\d) (\d{4})$/

/** An obsolete form of a date as IMF-fixdate; any other text unchanged. */
function fixdateOf(text: string): string {
  const [, day, date = '', month, year = '', time] = rfc850Date.exec(text) ?? []
  if (day !== undefined) return `${day}, ${date} ${month} ${fullYear(Number(year))} ${time} GMT`
  const [, weekday, name, number = '', clock, full] = asctimeDate.exec(text) ?? []
  if (weekday === undefined) return text
  return `${weekday}, ${number.replace(' ', '0')} ${name} ${full} ${clock} GMT`
}

/** A year of two digits that would be more than 50 years in the future is the latest one in the past. */
function fullYear(year: number): number {
  const current = new Date().getUTCFullYear()
  const found = current - (current % 100) + year
  return found > current + 50 ? found - 100 : found
}

/** Exactly one range; empty list members are ignored (RFC 9110, sections 14.1.2 and 5.6.1). */
const singleRange = /^bytes=[ \t,]*(?<first>[0-9]*)-(?<last>[0-9]*)[ \t,]*$/i

/** Both ends are inclusive. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/**
 * Returns the part that a Range header requests of a file of `size` bytes (docs/interface.md B3, RFC 9110, section 14).
 * Returns `whole` without a header, and for a header that section 14.2 allows to ignore: multiple ranges, other units
 * and malformed ranges.
 */
export function parseByteRange(
  header: string | undefined,
  size: number,
): ByteRange | 'whole' | 'unsatisfiable' {
  const { first, last } = singleRange.exec(header ?? '')?.groups ?? {}
  if (first === undefined || last === undefined) return 'whole'
  if (first === '') return last === '' ? 'whole' : suffixRange(Number(last), size)
  // Compared as BigInt: `last` may be less than `first` although both round to the same double.
  if (last !== '' && BigInt(last) < BigInt(first)) return 'whole'
  const start = Number(first)
  if (start >= size) return 'unsatisfiable'
  return { start, end: last === '' ? size - 1 : Math.min(Number(last), size - 1) }
}

/** A suffix of an empty file is satisfiable, but Content-Range cannot express it, so it returns `whole`. */
function suffixRange(length: number, size: number): ByteRange | 'whole' | 'unsatisfiable' {
  if (length === 0) return 'unsatisfiable'
  if (size === 0) return 'whole'
  return { start: Math.max(0, size - length), end: size - 1 }
}
