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
  UploadPartCommand,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3'
import { payloadHash } from './payload-hash.ts'
import type { S3Clients } from './s3-client.ts'
import { asStoreFault, isMissing, isRejected, StoreError, statusOf } from './s3-errors.ts'
import { createUrlSigner } from './sign-url.ts'

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

/** The requests to one bucket. Each has a deadline. They throw Fault `storage-unavailable` and `storage-full`. */
export type ObjectCalls = ReturnType<typeof createObjectCalls>

export function createObjectCalls(
  { repeating, once, downloads }: S3Clients,
  bucket: string,
  timeouts: Timeouts = defaultTimeouts,
) {
  const at = (Key: string) => ({ Bucket: bucket, Key })

  async function short<T>(request: (options: { abortSignal: AbortSignal }) => Promise<T>): Promise<T> {
    return await request({ abortSignal: AbortSignal.timeout(timeouts.short) }).catch((error: unknown) => {
      throw asStoreFault(error)
    })
  }

  /** Throws UncertainOutcome, with the fault as its cause, unless the store has rejected the request. */
  async function sending<T>(
    request: (options: { abortSignal: AbortSignal }) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    const deadline = AbortSignal.timeout(timeouts.part)
    try {
      return await request({ abortSignal: signal ? AbortSignal.any([deadline, signal]) : deadline })
    } catch (error) {
      if (isRejected(error)) throw asStoreFault(error)
      throw new UncertainOutcome('a request was sent, and its outcome is unknown', {
        cause: asStoreFault(error),
      })
    }
  }

  /** The size; null if there is no object. */
  async function head(key: string): Promise<number | null> {
    return await short(async (options) => {
      try {
        return (await repeating.send(new HeadObjectCommand(at(key)), options)).ContentLength ?? 0
      } catch (error) {
        if (isMissing(error)) return null
        throw error
      }
    })
  }

  return {
    timeouts,
    head,
    signUrl: createUrlSigner(downloads, bucket),

    /** Repeats are harmless, because no other bytes are ever stored under the key. `sha256` is verified by the store. */
    async put(key: string, bytes: Uint8Array, sha256: Uint8Array): Promise<void> {
      const command = new PutObjectCommand({ ...at(key), Body: bytes, ContentLength: bytes.byteLength })
      command.middlewareStack.add(...payloadHash(sha256))
      await sending((options) => repeating.send(command, options))
    },

    /**
     * Bytes `start` to `end`, both inclusive and possibly past the end; null if there is no object. The deadline is for the first byte.
     * The caller limits the time between later ones, and destroys the body if it does not read it to its end.
     */
    async get(key: string, start: number, end: number): Promise<ObjectBody | null> {
      const abort = new AbortController()
      const timer = setTimeout(() => abort.abort(), timeouts.short)
      try {
        const command = new GetObjectCommand({ ...at(key), Range: `bytes=${start}-${end}` })
        const {
          Body: body,
          ContentRange: range,
          ContentLength: length,
        } = await downloads.send(command, {
          abortSignal: abort.signal,
        })
        if (!isNodeStream(body)) throw new StoreError('a response has no body')
        const size = /\/(\d+)$/.exec(range ?? '')?.[1] ?? length
        return { body, size: Number(size), length: length ?? null }
      } catch (error) {
        if (isMissing(error)) return null
        throw asStoreFault(error)
      } finally {
        clearTimeout(timer)
      }
    },

    async remove(key: string): Promise<void> {
      await short((options) => repeating.send(new DeleteObjectCommand(at(key)), options))
    },

    /** Not repeated: each success creates another upload. */
    async createMultipart(key: string): Promise<string> {
      const { UploadId } = await sending((options) =>
        once.send(new CreateMultipartUploadCommand(at(key)), options),
      )
      if (UploadId === undefined) throw new StoreError('a new multipart upload has no id')
      return UploadId
    },

    /** Repeats are harmless, because they send the same bytes. `sha256` is verified by the store. */
    async putPart(
      key: string,
      upload: string,
      number: number,
      part: { readonly bytes: Uint8Array; readonly sha256: Uint8Array },
      signal?: AbortSignal,
    ): Promise<StoredPart> {
      const command = new UploadPartCommand({
        ...at(key),
        ...{ UploadId: upload, PartNumber: number, Body: part.bytes, ContentLength: part.bytes.byteLength },
      })
      command.middlewareStack.add(...payloadHash(part.sha256))
      const { ETag } = await sending((options) => repeating.send(command, options), signal)
      return { number, etag: ETag ?? '' }
    },

    /** Copies bytes of an object, first and last included, without sending them through this process. */
    async copyPart(
      key: string,
      upload: string,
      number: number,
      from: { readonly key: string; readonly start: number; readonly end: number },
    ): Promise<StoredPart> {
      const command = new UploadPartCopyCommand({
        ...at(key),
        ...{ UploadId: upload, PartNumber: number, CopySource: `${bucket}/${from.key}` },
        CopySourceRange: `bytes=${from.start}-${from.end}`,
      })
      const { CopyPartResult } = await sending((options) => repeating.send(command, options))
      return { number, etag: CopyPartResult?.ETag ?? '' }
    },

    /** Repeats are harmless, but if the response to an earlier attempt was lost, the next one fails with `NoSuchUpload`. */
    async complete(key: string, upload: string, parts: readonly StoredPart[]): Promise<void> {
      const command = new CompleteMultipartUploadCommand({
        ...at(key),
        UploadId: upload,
        MultipartUpload: { Parts: parts.map(({ number, etag }) => ({ PartNumber: number, ETag: etag })) },
      })
      await sending((options) => repeating.send(command, options))
    },

    /** Does nothing if there is no such upload. */
    async abort(key: string, upload: string): Promise<void> {
      await short(async (options) => {
        try {
          await repeating.send(new AbortMultipartUploadCommand({ ...at(key), UploadId: upload }), options)
        } catch (error) {
          if (statusOf(error) !== 404) throw error
        }
      })
    },

    /** The multipart uploads of keys with this prefix. */
    async *multipartUploads(
      prefix: string,
    ): AsyncGenerator<{ key: string; upload: string; startedAt: number }> {
      let marker: { KeyMarker?: string; UploadIdMarker?: string } | null = {}
      while (marker !== null) {
        const command: ListMultipartUploadsCommand = new ListMultipartUploadsCommand({
          Bucket: bucket,
          Prefix: prefix,
          ...marker,
        })
        const page = await short((options) => repeating.send(command, options))
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
    },

    async *list(prefix: string): AsyncGenerator<ListedObject> {
      let token: string | undefined
      do {
        const command: ListObjectsV2Command = new ListObjectsV2Command({
          ...{ Bucket: bucket, Prefix: prefix },
          ...(token !== undefined && { ContinuationToken: token }),
        })
        const page = await short((options) => repeating.send(command, options))
        for (const { Key, Size } of page.Contents ?? [])
          if (Key !== undefined) yield { key: Key, size: Size ?? 0 }
        token = page.IsTruncated ? page.NextContinuationToken : undefined
      } while (token !== undefined)
    },
  }
}

const isNodeStream = (body: unknown): body is Readable =>
  typeof body === 'object' && body !== null && 'pipe' in body && 'destroy' in body
