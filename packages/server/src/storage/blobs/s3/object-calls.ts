import { Agent as HttpsAgent } from 'node:https'
import type { Readable } from 'node:stream'
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { type ItemId, isItemId, requireItemId } from '../../../core/ids.ts'
import type { S3Location } from '../../../core/storage-urls.ts'
import { isVariantKey, type VariantKey } from '../../../core/variants.ts'
import type { SignedHeaders } from '../blobs.ts'
import { asStoreFault, isMissing, isRejected, StoreError, statusOf } from './errors.ts'

/** Milliseconds. Repetitions of a request are included. */
const defaultTimeouts = {
  /** For a short request, and for the first byte of a download. */
  short: 10_000,
  /** For a request that sends or copies a part. */
  part: 60_000,
  /** For the next bytes of a download. */
  stall: 10_000,
}

export type Timeouts = typeof defaultTimeouts

/** A part of a multipart upload that the store holds. */
export interface StoredPart {
  readonly number: number
  readonly etag: string
}

/** The bytes of a response as they arrive. */
export interface ObjectBody {
  readonly body: Readable
  /** Of the whole object. */
  readonly size: number
  /** Bytes of the body: an end after another number of bytes is an error of the body. Null if the store has not announced them. */
  readonly length: number | null
}

export interface ListedObject {
  readonly key: string
  readonly size: number
}

/** A request whose outcome is unknown: the store may execute it later. */
export class UncertainOutcome extends Error {
  override readonly name = 'UncertainOutcome'
}

/** Where a part of a multipart upload belongs. */
export interface PartPlace {
  readonly key: string
  readonly upload: string
  /** From 1. */
  readonly number: number
}

type RequestOptions = { readonly abortSignal: AbortSignal }

/** The requests to one bucket. Each has a deadline. They throw Fault `storage-unavailable` and `storage-full`. */
export class ObjectCalls {
  readonly timeouts: Timeouts
  readonly #bucket: string
  readonly #repeating: S3Client
  readonly #once: S3Client
  readonly #downloads: S3Client
  /** Signs URLs of objects, for `RemoteContent.signUrl`. */
  readonly signUrl: ReturnType<typeof createUrlSigner>

  constructor(
    { repeating, once, downloads }: S3Clients,
    bucket: string,
    timeouts: Timeouts = defaultTimeouts,
  ) {
    this.timeouts = timeouts
    this.#bucket = bucket
    this.#repeating = repeating
    this.#once = once
    this.#downloads = downloads
    this.signUrl = createUrlSigner(downloads, bucket)
  }

  /** The size; null if there is no object. */
  async head(key: string): Promise<number | null> {
    return await this.#short(async (options) => {
      try {
        const { ContentLength } = await this.#repeating.send(new HeadObjectCommand(this.#at(key)), options)
        return ContentLength ?? 0
      } catch (error) {
        if (isMissing(error)) return null
        throw error
      }
    })
  }

  /** Repeats are harmless, because no other bytes are ever stored under the key. `sha256` is verified by the store. */
  async put(key: string, bytes: Uint8Array, sha256: Uint8Array): Promise<void> {
    const command = new PutObjectCommand({
      ...this.#at(key),
      Body: bytes,
      ContentLength: bytes.byteLength,
    })
    command.middlewareStack.add(...payloadHash(sha256))
    await this.#sending((options) => this.#repeating.send(command, options))
  }

  /**
   * Bytes `start` to `end`, both inclusive and possibly past the end; null if there is no object. The deadline is for the first byte.
   * The caller limits the time between later ones, and destroys the body if it does not read it to its end.
   */
  async get(key: string, start: number, end: number): Promise<ObjectBody | null> {
    const abort = new AbortController()
    const timer = setTimeout(() => abort.abort(), this.timeouts.short)
    try {
      const command = new GetObjectCommand({ ...this.#at(key), Range: `bytes=${start}-${end}` })
      const response = await this.#downloads.send(command, { abortSignal: abort.signal })
      const { Body: body, ContentRange: range, ContentLength: length } = response
      if (!isNodeStream(body)) throw new StoreError('a response has no body')
      const size = /\/(\d+)$/.exec(range ?? '')?.[1] ?? length
      return { body, size: Number(size), length: length ?? null }
    } catch (error) {
      if (isMissing(error)) return null
      throw asStoreFault(error)
    } finally {
      clearTimeout(timer)
    }
  }

  async remove(key: string): Promise<void> {
    const command = new DeleteObjectCommand(this.#at(key))
    await this.#short((options) => this.#repeating.send(command, options))
  }

  /** Not repeated: each success creates another upload. */
  async createMultipart(key: string): Promise<string> {
    const command = new CreateMultipartUploadCommand(this.#at(key))
    const { UploadId } = await this.#sending((options) => this.#once.send(command, options))
    if (UploadId === undefined) throw new StoreError('a new multipart upload has no id')
    return UploadId
  }

  /** Repeats are harmless, because they send the same bytes. `sha256` is verified by the store. */
  async putPart(
    { key, upload, number }: PartPlace,
    { bytes, sha256 }: { readonly bytes: Uint8Array; readonly sha256: Uint8Array },
    signal?: AbortSignal,
  ): Promise<StoredPart> {
    const command = new UploadPartCommand({
      ...this.#at(key),
      ...{ UploadId: upload, PartNumber: number, Body: bytes, ContentLength: bytes.byteLength },
    })
    command.middlewareStack.add(...payloadHash(sha256))
    const { ETag } = await this.#sending((options) => this.#repeating.send(command, options), signal)
    return { number, etag: ETag ?? '' }
  }

  /** Copies bytes of an object, first and last included, without sending them through this process. */
  async copyPart(
    { key, upload, number }: PartPlace,
    from: { readonly key: string; readonly start: number; readonly end: number },
  ): Promise<StoredPart> {
    const command = new UploadPartCopyCommand({
      ...this.#at(key),
      ...{ UploadId: upload, PartNumber: number, CopySource: `${this.#bucket}/${encodeKey(from.key)}` },
      CopySourceRange: `bytes=${from.start}-${from.end}`,
    })
    const { CopyPartResult } = await this.#sending((options) => this.#repeating.send(command, options))
    return { number, etag: CopyPartResult?.ETag ?? '' }
  }

  /** Repeats are harmless, but if the response to an earlier attempt was lost, the next one fails with `NoSuchUpload`. */
  async complete(key: string, upload: string, parts: readonly StoredPart[]): Promise<void> {
    const command = new CompleteMultipartUploadCommand({
      ...this.#at(key),
      UploadId: upload,
      MultipartUpload: { Parts: parts.map(({ number, etag }) => ({ PartNumber: number, ETag: etag })) },
    })
    await this.#sending((options) => this.#repeating.send(command, options))
  }

  /** Does nothing if there is no such upload. */
  async abort(key: string, upload: string): Promise<void> {
    const command = new AbortMultipartUploadCommand({ ...this.#at(key), UploadId: upload })
    await this.#short(async (options) => {
      try {
        await this.#repeating.send(command, options)
      } catch (error) {
        if (statusOf(error) !== 404) throw error
      }
    })
  }

  /** The multipart uploads of keys with this prefix. */
  async *multipartUploads(
    prefix: string,
  ): AsyncGenerator<{ key: string; upload: string; startedAt: number }> {
    let marker: { KeyMarker?: string; UploadIdMarker?: string } | null = {}
    while (marker !== null) {
      const command: ListMultipartUploadsCommand = new ListMultipartUploadsCommand({
        Bucket: this.#bucket,
        Prefix: prefix,
        ...marker,
      })
      const page = await this.#short((options) => this.#repeating.send(command, options))
      for (const { Key, UploadId, Initiated } of page.Uploads ?? [])
        if (Key !== undefined && UploadId !== undefined)
          yield { key: Key, upload: UploadId, startedAt: Initiated?.getTime() ?? 0 }
      marker = page.IsTruncated
        ? {
            ...(page.NextKeyMarker !== undefined && { KeyMarker: page.NextKeyMarker }),
            ...(page.NextUploadIdMarker !== undefined && { UploadIdMarker: page.NextUploadIdMarker }),
          }
        : null
    }
  }

  async *list(prefix: string): AsyncGenerator<ListedObject> {
    let token: string | undefined
    do {
      const command: ListObjectsV2Command = new ListObjectsV2Command({
        ...{ Bucket: this.#bucket, Prefix: prefix },
        ...(token !== undefined && { ContinuationToken: token }),
      })
      const page = await this.#short((options) => this.#repeating.send(command, options))
      for (const { Key, Size } of page.Contents ?? [])
        if (Key !== undefined) yield { key: Key, size: Size ?? 0 }
      token = page.IsTruncated ? page.NextContinuationToken : undefined
    } while (token !== undefined)
  }

  #at(Key: string): { readonly Bucket: string; readonly Key: string } {
    return { Bucket: this.#bucket, Key }
  }

  async #short<T>(request: (options: RequestOptions) => Promise<T>): Promise<T> {
    const abortSignal = AbortSignal.timeout(this.timeouts.short)
    return await request({ abortSignal }).catch((error: unknown) => {
      throw asStoreFault(error)
    })
  }

  /** Throws UncertainOutcome, with the fault as its cause, unless the store has rejected the request. */
  async #sending<T>(request: (options: RequestOptions) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const deadline = AbortSignal.timeout(this.timeouts.part)
    try {
      return await request({ abortSignal: signal ? AbortSignal.any([deadline, signal]) : deadline })
    } catch (error) {
      if (isRejected(error)) throw asStoreFault(error)
      throw new UncertainOutcome('a request was sent, and its outcome is unknown', {
        cause: asStoreFault(error),
      })
    }
  }
}

/** The key in a URL, as the store decodes it: a foreign object can have any name. */
const encodeKey = (key: string): string => key.split('/').map(encodeURIComponent).join('/')

const isNodeStream = (body: unknown): body is Readable =>
  typeof body === 'object' && body !== null && 'pipe' in body && 'destroy' in body

// An import would load more: see core/node-http.ts.
const { Agent: HttpAgent } = process.getBuiltinModule('node:http')

/** Milliseconds until a connection must be established. */
const connectionTimeout = 3_000

/** Attempts for a request that can be repeated. */
const attempts = 3

/** Connections for uploads and short requests, and for downloads, whose clients may be slow. */
const maxSockets = 256
const maxDownloads = 4_096

/** The clients of one store. */
export interface S3Clients {
  /** Repeats requests, so only for those that have the same effect if they are repeated. */
  readonly repeating: S3Client
  readonly once: S3Client
  /** Has connections of its own, so that slow downloads delay no other request. Repeats requests. */
  readonly downloads: S3Client
  close(): void
}

/** Credentials come from the usual chain of the SDK, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. */
export function createS3Clients({ endpoint, region, pathStyle }: S3Location): S3Clients {
  const create = (maxAttempts: number, sockets: number) =>
    new S3Client({
      region,
      ...(endpoint !== null && { endpoint }),
      forcePathStyle: pathStyle,
      maxAttempts,
      // Otherwise the SDK sends checksums as trailers, which some stores refuse.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      followRegionRedirects: true,
      requestHandler: {
        connectionTimeout,
        httpAgent: new HttpAgent({ keepAlive: true, maxSockets: sockets }),
        httpsAgent: new HttpsAgent({ keepAlive: true, maxSockets: sockets }),
      },
    })
  const repeating = create(attempts, maxSockets)
  const once = create(1, maxSockets)
  const downloads = create(attempts, maxDownloads)
  return {
    repeating,
    once,
    downloads,
    close() {
      for (const client of [repeating, once, downloads]) client.destroy()
    },
  }
}

interface HeaderRequest {
  readonly headers: Record<string, string>
}
const hasHeaders = (request: unknown): request is HeaderRequest =>
  typeof request === 'object' && request !== null && 'headers' in request

/** Signs the SHA-256 of the body, which the store compares with the received bytes; otherwise the SDK would compute it again. */
const payloadHash = (sha256: Uint8Array) =>
  [
    <Args extends { request?: unknown }, Result>(next: (args: Args) => Promise<Result>) =>
      (args: Args): Promise<Result> => {
        if (hasHeaders(args.request))
          args.request.headers['x-amz-content-sha256'] = Buffer.from(sha256).toString('hex')
        return next(args)
      },
    { step: 'build', name: 'payloadHash' },
  ] as const

/** Signs URLs of objects, for `RemoteContent.signUrl`. Throws Fault `storage-unavailable` if there are no credentials. */
export function createUrlSigner(
  client: S3Client,
  bucket: string,
): (key: string, headers: SignedHeaders | null, lifetime: number) => Promise<string> {
  return async (key, headers, lifetime) => {
    const now = Date.now()
    const command = new GetObjectCommand({
      Bucket: bucket,
      Key: key,
      ...(headers && {
        ResponseContentType: headers.contentType,
        ResponseContentDisposition: headers.contentDisposition,
        ResponseCacheControl: headers.cacheControl,
      }),
    })
    // Equal URLs for half of the lifetime, so that browsers can cache what they return.
    const options = { expiresIn: lifetime / 1_000, signingDate: new Date(now - (now % (lifetime / 2))) }
    return await getSignedUrl(client, command, options).catch((error: unknown) => {
      throw asStoreFault(error)
    })
  }
}

// The functions that make keys of ids throw MalformedId.

/** The object that identifies the catalog to which the bytes belong. */
export const identityKey = (prefix: string): string => `${prefix}identity`

/** The object for BlobsDirectory.writeAnnounced. */
export const announcedKey = (prefix: string): string => `${prefix}announced`

export const blobKey = (prefix: string, id: ItemId): string => `${prefix}${requireItemId(id)}`

const variantsFolder = 'variants/'

export const allVariantsFolder = (prefix: string): string => `${prefix}${variantsFolder}`

export const variantFolder = (prefix: string, id: ItemId): string =>
  `${prefix}${variantsFolder}${requireItemId(id)}/`

export const variantObjectKey = (prefix: string, id: ItemId, key: VariantKey): string =>
  `${variantFolder(prefix, id)}${key}`

/** What an object is, by its key. */
export type KeyMeaning =
  | { readonly kind: 'stored'; readonly id: ItemId }
  | { readonly kind: 'variant'; readonly id: ItemId; readonly variantKey: VariantKey }
  | { readonly kind: 'own' }
  | { readonly kind: 'foreign' }

export function meaningOf(prefix: string, key: string): KeyMeaning {
  const name = key.slice(prefix.length)
  if (key === identityKey(prefix) || key === announcedKey(prefix)) return { kind: 'own' }
  if (isItemId(name)) return { kind: 'stored', id: name }
  const [folder, id = '', variantKey = '', ...more] = name.split('/')
  if (`${folder}/` === variantsFolder && isItemId(id) && isVariantKey(variantKey) && more.length === 0)
    return { kind: 'variant', id, variantKey }
  return { kind: 'foreign' }
}
