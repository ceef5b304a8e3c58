import { LRUCache } from 'lru-cache'
import { type AccessKeys, type KeyGrant, wrongSignature } from '../access/key-access.ts'
import { isBucketName } from '../core/names.ts'
import { countHeader } from '../http/headers.ts'
import type { RequestLimits } from '../http/limits.ts'
import { S3Error } from './s3-errors.ts'
import type { S3Request } from './s3-request.ts'
import { signatureV2 } from './signature-v2.ts'
import {
  areEqualSecretly,
  ChunkSignatures,
  parseAmzDate,
  parseAuthorization,
  type SignatureV4,
  signatureOf,
  signatureParameter,
  signingKeyOf,
  signWith,
  stringToSign,
} from './signature-v4.ts'

/** How the body of a request is protected and coded. */
export interface Payload {
  /** Of the whole body, in hexadecimal digits; null if it is not signed. */
  readonly sha256: string | null
  /** Whether the body has the coding `aws-chunked`. */
  readonly isChunked: boolean
  readonly hasTrailer: boolean
  /** Null if the chunks are not signed. */
  readonly signatures: ChunkSignatures | null
}

/** A request whose signature is right. */
export interface Authentication {
  readonly grant: KeyGrant
  readonly payload: Payload
}

/** The payload of a request without a signature. */
const plainPayload: Payload = { sha256: null, isChunked: false, hasTrailer: false, signatures: null }

/** Milliseconds by which the clock of a client may differ. */
const maxSkew = 900_000

/** Seconds for which a URL can be valid: a week. */
const maxExpiry = 604_800

interface AuthenticatorParts {
  readonly accessKeys: AccessKeys
  readonly limits: Pick<RequestLimits, 'countAuthFailure'>
  readonly now: () => number
}

/** Verifies the signatures of requests (docs/interface.md SP2, SP3). */
export class Authenticator {
  readonly #parts: AuthenticatorParts
  /** By secret and scope: they are the same for all requests of a day. */
  readonly #signingKeys = new LRUCache<string, Buffer>({ max: 1_000 })

  constructor(parts: AuthenticatorParts) {
    this.#parts = parts
  }

  /** Null for a request without a signature. Throws S3Error and Fault. */
  async authenticate(request: S3Request): Promise<Authentication | null> {
    switch (request.signing) {
      case 'header':
        return await this.#verifyHeader(request)
      case 'url-v4':
        return await this.#verifyUrl(request)
      case 'url-v2':
        return { grant: await this.#verifyUrlV2(request), payload: plainPayload }
      default:
        return null
    }
  }

  async #verifyHeader(request: S3Request): Promise<Authentication> {
    const { authorization = '' } = request.request.headers
    if (countHeader(request.request, 'authorization') > 1)
      throw new S3Error('InvalidArgument', 'The request has more than one Authorization header.')
    if (!authorization.startsWith('AWS4-'))
      throw new S3Error('InvalidRequest', 'Sign the request with AWS4-HMAC-SHA256 (Signature Version 4).')
    const signature = parseAuthorization(authorization)
    if (signature === null) throw new S3Error('AuthorizationHeaderMalformed')
    const time = request.header('x-amz-date') ?? basicTime(request.header('date'))
    const at = parseAmzDate(time ?? '')
    if (time === undefined || at === null)
      throw new S3Error('AccessDenied', 'The request needs a valid X-Amz-Date header.')
    requireScopeOf(signature, time)
    if (Math.abs(this.#parts.now() - at) > maxSkew) throw new S3Error('RequestTimeTooSkewed')
    const payloadHash = request.header('x-amz-content-sha256')
    if (payloadHash === undefined)
      throw new S3Error('InvalidRequest', 'The request needs the header x-amz-content-sha256.')
    return await this.#verify(request, signature, time, payloadHash)
  }

  async #verifyUrl(request: S3Request): Promise<Authentication> {
    const malformed = (detail: string) => new S3Error('AuthorizationHeaderMalformed', detail)
    if (request.parameter('X-Amz-Algorithm') !== 'AWS4-HMAC-SHA256')
      throw malformed('X-Amz-Algorithm must be AWS4-HMAC-SHA256.')
    const signature = signatureOf(
      request.parameter('X-Amz-Credential'),
      request.parameter('X-Amz-SignedHeaders'),
      request.parameter(signatureParameter),
    )
    if (signature === null)
      throw malformed('X-Amz-Credential, X-Amz-SignedHeaders or X-Amz-Signature is malformed.')
    const time = request.parameter('X-Amz-Date') ?? ''
    const at = parseAmzDate(time)
    if (at === null) throw malformed('X-Amz-Date is malformed.')
    requireScopeOf(signature, time)
    const expires = request.parameter('X-Amz-Expires') ?? ''
    const seconds = /^\d{1,9}$/.test(expires) ? Number(expires) : 0
    if (seconds < 1 || seconds > maxExpiry)
      throw new S3Error('AccessDenied', `X-Amz-Expires must be a number of seconds from 1 to ${maxExpiry}.`)
    const now = this.#parts.now()
    if (now < at - maxSkew) throw new S3Error('AccessDenied', 'The URL is not valid yet.')
    if (now > at + seconds * 1_000) throw new S3Error('AccessDenied', 'The URL has expired.')
    return await this.#verify(
      request,
      signature,
      time,
      request.header('x-amz-content-sha256') ?? 'UNSIGNED-PAYLOAD',
    )
  }

  async #verify(
    request: S3Request,
    signature: SignatureV4,
    time: string,
    payloadHash: string,
  ): Promise<Authentication> {
    requireSignedHeaders(request, signature)
    const { path, query } = request.target
    const { method = '', rawHeaders } = request.request
    const signed = { method, path, query, rawHeaders, payloadHash }
    const texts = [stringToSign(signed, signature, time)]
    if (rawHeaders.some((text) => /[\x80-\xff]/.test(text)))
      texts.push(stringToSign(signed, signature, time, 'utf8'))
    const { grant, secret } = await this.#matching(request, signature.accessKeyId, (secret) =>
      texts.some((text) =>
        areEqualSecretly(signWith(this.#keyOf(secret, signature.scope), text), signature.signature),
      ),
    )
    const chunkSignatures = () =>
      new ChunkSignatures(this.#keyOf(secret, signature.scope), time, signature.scope, signature.signature)
    return { grant, payload: payloadOf(payloadHash, chunkSignatures) }
  }

  #keyOf(secret: string, scope: string): Buffer {
    const name = `${secret} ${scope}`
    const known = this.#signingKeys.get(name)
    if (known !== undefined) return known
    const key = signingKeyOf(secret, scope)
    this.#signingKeys.set(name, key)
    return key
  }

  async #verifyUrlV2(request: S3Request): Promise<KeyGrant> {
    const expires = request.parameter('Expires') ?? ''
    const time = /^\d{1,12}$/.test(expires) ? Number(expires) : Number.NaN
    if (Number.isNaN(time)) throw new S3Error('AccessDenied', 'Expires must be a time in seconds since 1970.')
    if (this.#parts.now() >= time * 1_000) throw new S3Error('AccessDenied', 'The URL has expired.')
    const { method = '', rawHeaders } = request.request
    const sent = request.parameter('Signature') ?? ''
    const { grant } = await this.#matching(request, request.parameter('AWSAccessKeyId') ?? '', (secret) =>
      areEqualSecretly(signatureV2(secret, { method, rawHeaders }, request.target, expires), sent),
    )
    return grant
  }

  /** What the access key grants, and the secret that `matches`. Throws S3Error `SignatureDoesNotMatch` if none does. */
  async #matching(
    request: S3Request,
    accessKeyId: string,
    matches: (secret: string) => boolean,
  ): Promise<{ readonly grant: KeyGrant; readonly secret: string }> {
    const { accessKeys, limits } = this.#parts
    const { bucket } = request.target
    const name = bucket !== null && isBucketName(bucket) ? bucket : null
    const { found, secrets } = await accessKeys.find(accessKeyId, name)
    const secret = secrets.find(matches)
    if (secret === undefined) {
      request.line.token = found.tokenId
      const fault = limits.countAuthFailure(wrongSignature(found.tokenId), request.request)
      throw fault.code === 'rate-limited' ? fault : new S3Error('SignatureDoesNotMatch')
    }
    return { grant: accessKeys.grant(found), secret }
  }
}

/** `Sun, 29 Nov 2026 06:45:00 GMT` as `20261129T064500Z`. */
function basicTime(date: string | undefined): string | undefined {
  const time = date === undefined ? Number.NaN : Date.parse(date)
  if (Number.isNaN(time)) return undefined
  return `${new Date(time).toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`
}

function requireScopeOf({ scope }: SignatureV4, time: string): void {
  if (scope.startsWith(`${time.slice(0, 8)}/`)) return
  throw new S3Error('AuthorizationHeaderMalformed', 'The date of the credential is not that of the request.')
}

/** Headers of the protocol that need no signature: the first two are part of what is signed. */
const unsignedHeaders: ReadonlySet<string> = new Set([
  'x-amz-content-sha256',
  'x-amz-date',
  'x-amz-user-agent',
])

/** Otherwise, a proxy or who has a signed URL could add headers that change what the request does. */
function requireSignedHeaders({ request }: S3Request, { signedHeaders }: SignatureV4): void {
  const missing = ['host', ...Object.keys(request.headers).filter((name) => name.startsWith('x-amz-'))].find(
    (name) => !signedHeaders.includes(name) && !unsignedHeaders.has(name),
  )
  if (missing !== undefined)
    throw new S3Error('AccessDenied', `The request has the header ${missing}, which is not signed.`)
}

function payloadOf(payloadHash: string, signatures: () => ChunkSignatures): Payload {
  if (/^[\da-f]{64}$/.test(payloadHash)) return { ...plainPayload, sha256: payloadHash }
  switch (payloadHash) {
    case 'UNSIGNED-PAYLOAD':
      return plainPayload
    case 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD':
      return { ...plainPayload, isChunked: true, signatures: signatures() }
    case 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER':
      return { ...plainPayload, isChunked: true, hasTrailer: true, signatures: signatures() }
    case 'STREAMING-UNSIGNED-PAYLOAD-TRAILER':
      return { ...plainPayload, isChunked: true, hasTrailer: true }
    default:
      throw new S3Error(
        'InvalidArgument',
        'x-amz-content-sha256 must be a SHA-256, or a value of Signature Version 4.',
      )
  }
}
