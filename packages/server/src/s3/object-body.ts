import { createHash, type Hash } from 'node:crypto'
import {
  type ChecksumAlgorithm,
  checksumAlgorithms,
  isChecksum,
  isChecksumAlgorithm,
  newChecksum,
} from '../core/checksums.ts'
import type { RunningChecksum } from '../core/crc.ts'
import type { BodyReader, WholeBodyReader } from '../http/bodies.ts'
import type { ObjectHeaders } from '../objects/object-types.ts'
import type { Payload } from './authentication.ts'
import { decodeChunks } from './chunked-body.ts'
import { S3Error } from './s3-errors.ts'
import type { S3Request } from './s3-request.ts'

const prefix = 'x-amz-checksum-'

/** The header of a checksum. */
export const checksumHeader = (algorithm: ChecksumAlgorithm): string => prefix + algorithm.toLowerCase()

/** The elements of documents that have the checksum of an object. */
export const checksumElements = (checksum: ObjectHeaders['checksum']) =>
  checksum === undefined
    ? {}
    : { [`Checksum${checksum.algorithm}`]: checksum.value, ChecksumType: checksum.type }

/** The algorithm that a header of the request names; null without it. Throws S3Error `InvalidRequest`. */
export function namedAlgorithm(request: S3Request, header: string): ChecksumAlgorithm | null {
  const name = request.header(header)?.toUpperCase()
  if (name === undefined) return null
  if (!isChecksumAlgorithm(name))
    throw new S3Error('InvalidRequest', `${header} must be one of ${checksumAlgorithms.join(', ')}.`)
  return name
}

/** The checksum that a request states for its body. */
interface StatedChecksum {
  readonly algorithm: ChecksumAlgorithm
  /** Base64; null if the trailer has it, or if the client states only the algorithm. */
  readonly value: string | null
  readonly isInTrailer: boolean
}

/**
 * The checksum of a header, or the one that the trailer will have; null if the client states none. As in S3, one in a signed URL is ignored:
 * clients that sign a URL do not have the body, and state the checksum of an empty one. Throws S3Error `InvalidRequest` and `BadDigest`.
 */
function statedChecksum(request: S3Request): StatedChecksum | null {
  const stated = checksumAlgorithms.flatMap((algorithm) => {
    const name = checksumHeader(algorithm)
    const value = request.request.headers[name] === undefined ? undefined : request.header(name)
    return value === undefined ? [] : [{ algorithm, value, isInTrailer: false }]
  })
  const trailer = request.header('x-amz-trailer')?.trim().toLowerCase()
  const inTrailer = checksumAlgorithms.filter((algorithm) => trailer === checksumHeader(algorithm))
  if (trailer !== undefined && inTrailer.length !== 1)
    throw new S3Error('InvalidRequest', 'x-amz-trailer must name one checksum header.')
  const all = [...stated, ...inTrailer.map((algorithm) => ({ algorithm, value: null, isInTrailer: true }))]
  if (all.length > 1) throw new S3Error('InvalidRequest', 'A request has one checksum at most.')
  const [only = null] = all
  if (only !== null) {
    requireChecksum(only.algorithm, only.value)
    return only
  }
  const algorithm = namedAlgorithm(request, 'x-amz-sdk-checksum-algorithm')
  return algorithm && { algorithm, value: null, isInTrailer: false }
}

function requireChecksum(algorithm: ChecksumAlgorithm, value: string | null): void {
  if (value !== null && !isChecksum(algorithm, value))
    throw new S3Error('BadDigest', `The value of ${checksumHeader(algorithm)} is no such checksum.`)
}

/** What was computed of a body that has arrived. */
export interface BodyDigests {
  readonly md5: Buffer
  readonly checksum: { readonly algorithm: ChecksumAlgorithm; readonly value: string } | null
}

export interface BodyOptions {
  /** The checksum to compute if the client states none. */
  readonly otherwise?: ChecksumAlgorithm | null
  /** False if the checksum that the request states is not that of its body. */
  readonly isChecked?: boolean
  /** True if the store computes the SHA-256 of the body, which `requireSha256` then gets. */
  readonly isStored?: boolean
}

/** The body of a request: decodes it, hashes it while it arrives, and compares what the client has stated. */
export class ObjectBody {
  /** Bytes without the coding; null if the client does not state them. */
  readonly size: number | null
  readonly #request: S3Request
  readonly #payload: Payload
  readonly #contentMd5: string | null
  readonly #stated: StatedChecksum | null
  readonly #md5 = createHash('md5')
  readonly #sha256: Hash | null
  readonly #checksum: RunningChecksum | null
  #trailer: ReadonlyMap<string, string> = new Map()
  #received = 0

  /** Throws S3Error for headers that cannot be right. */
  constructor(
    request: S3Request,
    payload: Payload,
    { otherwise = null, isChecked = true, isStored = false }: BodyOptions = {},
  ) {
    this.#request = request
    this.#payload = payload
    this.size = sizeOf(request, payload)
    this.#contentMd5 = contentMd5Of(request)
    this.#stated =
      (isChecked ? statedChecksum(request) : null) ??
      (otherwise && { algorithm: otherwise, value: null, isInTrailer: false })
    if (this.#stated?.isInTrailer === true && !payload.hasTrailer)
      throw new S3Error(
        'InvalidRequest',
        'The request announces a trailer, which its x-amz-content-sha256 does not.',
      )
    this.#sha256 = payload.sha256 === null || isStored ? null : createHash('sha256')
    this.#checksum = this.#stated && newChecksum(this.#stated.algorithm)
  }

  /** Of the checksum that is computed; null for none. */
  get algorithm(): ChecksumAlgorithm | null {
    return this.#stated?.algorithm ?? null
  }

  /** Throws S3Error `MissingContentLength` for a request that does not say where its body ends. */
  requireLength(): void {
    if (this.size === null && this.#request.header('transfer-encoding') === undefined)
      throw new S3Error('MissingContentLength')
  }

  /** The bytes as they arrive. Each is valid until the next is requested. */
  async *read(readBody: BodyReader): AsyncGenerator<Uint8Array, void, void> {
    let arrived: Uint8Array | null = null
    const hash = () => {
      if (arrived !== null) this.#hash(arrived)
      arrived = null
    }
    try {
      for await (const bytes of this.#decode(readBody(this.#request.request))) {
        arrived = bytes
        // Once the reader has begun to write the bytes, so that both overlap.
        setImmediate(hash)
        yield bytes
        hash()
      }
    } finally {
      arrived = null
    }
    if (this.size !== null && this.#received !== this.size) throw new S3Error('IncompleteBody')
  }

  /** All bytes of a small body; null if the memory for bodies is used up. */
  async readWhole(readWholeBody: WholeBodyReader): Promise<Uint8Array | null> {
    const sent = await readWholeBody(this.#request.request)
    if (sent === null) return null
    const bytes = this.#payload.isChunked ? await this.#decodeWhole(sent) : sent
    this.#hash(bytes)
    return bytes
  }

  async #decodeWhole(sent: Uint8Array): Promise<Uint8Array> {
    const chunks: Uint8Array[] = []
    for await (const chunk of this.#decode([sent])) chunks.push(chunk)
    const [only] = chunks
    return chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks)
  }

  #decode(
    sent: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  ): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
    const { isChunked, hasTrailer, signatures } = this.#payload
    if (!isChunked) return sent
    return decodeChunks(sent, {
      ...{ length: this.size ?? 0, signatures },
      trailer: hasTrailer ? this.#trailerName() : null,
      onTrailer: (headers) => {
        this.#trailer = headers
      },
    })
  }

  /** The only header that the trailer may have; empty for none. */
  #trailerName(): string {
    return this.#stated?.isInTrailer === true ? checksumHeader(this.#stated.algorithm) : ''
  }

  #hash(bytes: Uint8Array): void {
    this.#received += bytes.byteLength
    this.#md5.update(bytes)
    this.#sha256?.update(bytes)
    this.#checksum?.update(bytes)
  }

  /** Compares the SHA-256 of the bytes with the one that is signed, if there is one. Throws S3Error `ContentSHA256Mismatch`. */
  requireSha256(found: Uint8Array): void {
    const { sha256 } = this.#payload
    if (sha256 !== null && Buffer.from(found).toString('hex') !== sha256)
      throw new S3Error('ContentSHA256Mismatch')
  }

  /** Call it once, after the last byte. Throws S3Error `BadDigest` and, unless the body is stored, `ContentSHA256Mismatch`. */
  finish(): BodyDigests {
    if (this.#sha256 !== null) this.requireSha256(this.#sha256.digest())
    const md5 = this.#md5.digest()
    if (this.#contentMd5 !== null && md5.toString('base64') !== this.#contentMd5)
      throw new S3Error('BadDigest', 'The MD5 of the body is not that of Content-MD5.')
    const stated = this.#stated
    if (stated === null || this.#checksum === null) return { md5, checksum: null }
    const { algorithm } = stated
    const value = this.#checksum.digest().toString('base64')
    const header = checksumHeader(algorithm)
    const expected = stated.isInTrailer ? (this.#trailer.get(header) ?? '') : stated.value
    if (stated.isInTrailer) requireChecksum(algorithm, expected)
    if (expected !== null && expected !== value)
      throw new S3Error('BadDigest', `The checksum of the body is not that of ${header}.`)
    return { md5, checksum: { algorithm, value } }
  }
}

function sizeOf(request: S3Request, payload: Payload): number | null {
  const length = request.header('content-length')
  if (!payload.isChunked) return length === undefined ? null : Number(length)
  const decoded = request.header('x-amz-decoded-content-length') ?? ''
  if (!/^\d{1,15}$/.test(decoded))
    throw new S3Error('MissingContentLength', 'An aws-chunked body needs x-amz-decoded-content-length.')
  return Number(decoded)
}

function contentMd5Of(request: S3Request): string | null {
  const header = request.header('content-md5')
  if (header === undefined) return null
  const bytes = Buffer.from(header, 'base64')
  if (bytes.byteLength !== 16 || bytes.toString('base64') !== header)
    throw new S3Error('InvalidDigest', 'Content-MD5 must be the Base64 of an MD5.')
  return header
}
