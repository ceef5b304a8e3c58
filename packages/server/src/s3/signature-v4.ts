import { createHmac, hash, timingSafeEqual } from 'node:crypto'

// Signature Version 4 of AWS: https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html

const algorithm = 'AWS4-HMAC-SHA256'

/** What a request says of its signature. */
export interface SignatureV4 {
  readonly accessKeyId: string
  /** `20261129/us-east-1/s3/aws4_request` */
  readonly scope: string
  /** In lower case, in the order in which they were signed. */
  readonly signedHeaders: readonly string[]
  /** 64 hexadecimal digits. */
  readonly signature: string
}

const credential = /^([\w-]{1,128})\/(\d{8}\/[\w-]{0,64}\/s3\/aws4_request)$/

/** Builds a signature of its three parts; null if one is malformed. */
export function signatureOf(
  sentCredential: string | undefined,
  sentHeaders: string | undefined,
  signature: string | undefined,
): SignatureV4 | null {
  const [, accessKeyId, scope] = credential.exec(sentCredential ?? '') ?? []
  if (accessKeyId === undefined || scope === undefined) return null
  if (signature === undefined || !/^[\da-f]{64}$/.test(signature)) return null
  const signedHeaders = sentHeaders?.toLowerCase().split(';') ?? []
  return signedHeaders.length === 0 ? null : { accessKeyId, scope, signedHeaders, signature }
}

/** Reads `AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…`; null if it is malformed. */
export function parseAuthorization(header: string): SignatureV4 | null {
  if (!header.startsWith(`${algorithm} `)) return null
  const parts = new Map(
    header
      .slice(algorithm.length + 1)
      .split(',')
      .map((part) => {
        const [name = '', ...value] = part.trim().split('=')
        return [name, value.join('=')] as const
      }),
  )
  return signatureOf(parts.get('Credential'), parts.get('SignedHeaders'), parts.get('Signature'))
}

/** The characters that AWS does not encode in a URI; `/` only in a path. */
const plainPath = /^[\w.~/-]*$/
const plainValue = /^[\w.~-]*$/

/** Encodes each byte of a text of UTF-8 but the unreserved characters of RFC 3986. */
export const encodeValue = (text: string): string =>
  plainValue.test(text)
    ? text
    : encodeURIComponent(text).replace(
        /[!'()*]/g,
        (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
      )

/** The path as it is signed: each byte encoded once, whatever the client has encoded. Its escapes must be well-formed. */
function canonicalPath(path: string): string {
  if (plainPath.test(path)) return path
  return path.replace(/%([\da-fA-F]{2})|[^\w.~/-]/g, (found, hex: string | undefined) => {
    const code = hex === undefined ? found.charCodeAt(0) : Number.parseInt(hex, 16)
    const character = String.fromCharCode(code)
    // A slash that was encoded stays so.
    if (/[\w.~-]/.test(character) && code < 0x80) return character
    return `%${code.toString(16).toUpperCase().padStart(2, '0')}`
  })
}

function canonicalQuery(query: URLSearchParams, leftOut: string | null): string {
  if (query.size === 0) return ''
  return [...query]
    .filter(([name]) => name !== leftOut)
    .map(([name, value]) => [encodeValue(name), encodeValue(value)] as const)
    .sort(([one, a], [other, b]) => (one < other ? -1 : one > other ? 1 : a < b ? -1 : a > b ? 1 : 0))
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
}

/** The request that was signed. */
export interface SignedRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  /** Alternating names and values, as Node has them. */
  readonly rawHeaders: readonly string[]
  /** The value of X-Amz-Content-Sha256. */
  readonly payloadHash: string
}

/** The parameter that has the signature, which does not sign itself. */
export const signatureParameter = 'X-Amz-Signature'

/**
 * `time` is that of the request, `20261129T064500Z`. Node has Latin-1 characters for the bytes of headers. Some clients send such characters as they are, and
 * sign them as UTF-8.
 */
export function stringToSign(
  request: SignedRequest,
  { scope, signedHeaders }: Pick<SignatureV4, 'scope' | 'signedHeaders'>,
  time: string,
  encoding: 'latin1' | 'utf8' = 'latin1',
): string {
  const { method, path, query, rawHeaders, payloadHash } = request
  const values = headerValues(rawHeaders)
  let canonical = `${method}\n${canonicalPath(path)}\n${canonicalQuery(query, signatureParameter)}\n`
  for (const name of signedHeaders) canonical += `${name}:${values.get(name)?.replace(/ {2,}/g, ' ') ?? ''}\n`
  canonical += `\n${signedHeaders.join(';')}\n${payloadHash}`
  const digest = hash('sha256', Buffer.from(canonical, encoding))
  return `${algorithm}\n${time}\n${scope}\n${digest}`
}

/**
 * The values of headers by their names in lower case, those of a repeated one with commas. `rawHeaders` has alternating names and values, from which Node
 * has removed the white space at both ends. A no-break space of Latin-1 there is the last byte of a character of UTF-8.
 */
export function headerValues(rawHeaders: readonly string[]): ReadonlyMap<string, string> {
  const values = new Map<string, string>()
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]?.toLowerCase() ?? ''
    const value = rawHeaders[index + 1] ?? ''
    const before = values.get(name)
    values.set(name, before === undefined ? value : `${before},${value}`)
  }
  return values
}

const hmac = (key: Uint8Array | string, text: string): Buffer =>
  createHmac('sha256', key).update(text).digest()

/** The key with which requests of one day, region and service are signed. */
export function signingKeyOf(secret: string, scope: string): Buffer {
  let key: Buffer | string = `AWS4${secret}`
  for (const part of scope.split('/')) key = hmac(key, part)
  return Buffer.from(key)
}

/** Hexadecimal. */
export const signWith = (key: Uint8Array, text: string): string =>
  createHmac('sha256', key).update(text).digest('hex')

/** Whether two texts are equal, in a time that does not depend on where they differ. */
export function areEqualSecretly(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.byteLength === b.byteLength && timingSafeEqual(a, b)
}

const emptyHash = hash('sha256', '')

/** Verifies the signatures of the chunks of one body, each of which signs the one before. */
export class ChunkSignatures {
  readonly #key: Uint8Array
  readonly #place: string
  #previous: string

  /** `seed` is the signature of the request. */
  constructor(key: Uint8Array, time: string, scope: string, seed: string) {
    this.#key = key
    this.#place = `${time}\n${scope}`
    this.#previous = seed
  }

  /** Whether this is the signature of the next chunk, whose bytes have this SHA-256 in hexadecimal digits. */
  accepts(signature: string, digest: string): boolean {
    return this.#verify(signature, `${algorithm}-PAYLOAD`, `${emptyHash}\n${digest}`)
  }

  /** Whether this is the signature of the trailer. */
  acceptsTrailer(signature: string, trailer: string): boolean {
    return this.#verify(signature, `${algorithm}-TRAILER`, hash('sha256', trailer))
  }

  #verify(signature: string, kind: string, rest: string): boolean {
    const expected = signWith(this.#key, `${kind}\n${this.#place}\n${this.#previous}\n${rest}`)
    this.#previous = expected
    return areEqualSecretly(expected, signature)
  }
}

/** Parses `20261129T064500Z` to milliseconds since 1970; null if it is malformed. */
export function parseAmzDate(text: string): number | null {
  const found = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text)
  if (found === null) return null
  const [, year, month, day, hour, minute, second] = found
  const time = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  return Number.isNaN(time) ? null : time
}
