import type { CallOptions } from './client-options.ts'
import { AnswerError, ShapeError } from './errors.ts'
import { headersReader, readNothing } from './responses.ts'
import { type Call, type SendSettings, send } from './send.ts'
import type { UploadBody } from './transport.ts'
import { type Endpoints, mediaIdOf, parseUrl } from './urls.ts'

/** The state of an upload, as the service reports it. */
export interface TusState {
  /** Bytes that the service has received. */
  readonly offset: number
  /** Total bytes; null if the service does not report it. */
  readonly length: number | null
  /** Upload-Metadata as sent when the upload was created; null if the service does not report it. */
  readonly metadata: string | null
  /** The id of the item; null while the upload is unfinished. */
  readonly item: string | null
}

export interface TusRequests {
  /** Creates an upload and returns its id; null if the service has no resumable uploads. */
  create(size: number, metadata: string): Promise<string | null>
  find(id: string): Promise<TusState>
  /** Sends a chunk once. `attempt` is the number of this attempt, which errors include. */
  append(id: string, chunk: TusChunk, attempt: number): Promise<TusState>
  /** Deletes an upload that will not be resumed, unless it does not exist. */
  remove(id: string, how: Pick<Call<void>, 'repeatable' | 'signal'>): Promise<void>
}

interface TusChunk {
  readonly offset: number
  readonly body: UploadBody
  /** Base64 of the SHA-256; null for none. */
  readonly sha256: string | null
}

const version = { 'tus-resumable': '1.0.0', accept: 'application/problem+json' }

/** The statuses of services without resumable uploads. */
const unsupportedStatuses = new Set([404, 405, 501])

/** Whether an id from a service or a store is exactly one segment of a path. */
export const isUploadId = (id: string): boolean => /^[\w~-][\w.~=-]*$/.test(id)

/** The requests of tus 1.0.0 (docs/interface.md, R1 to R14). Only the id of `Location` is used; requests go to the client's service. */
export function tusRequests(
  settings: SendSettings,
  url: string,
  signal: AbortSignal | undefined,
): TusRequests {
  return {
    async create(size, metadata) {
      try {
        return await send(settings, {
          method: 'POST',
          url,
          headers: {
            ...version,
            'upload-length': `${size}`,
            ...(metadata && { 'upload-metadata': metadata }),
          },
          // Repeatable: an upload whose response was lost stays empty and expires.
          repeatable: true,
          signal,
          read: headersReader(({ headers }) => idOf(headers.get('location') ?? '')),
        })
      } catch (error) {
        if (error instanceof AnswerError && unsupportedStatuses.has(error.status)) return null
        throw error
      }
    },

    find: (id) =>
      send(settings, {
        method: 'HEAD',
        url: `${url}/${id}`,
        headers: version,
        repeatable: true,
        signal,
        read: headersReader(stateOf),
      }),

    append: (id, { offset, body, sha256 }, attempt) =>
      send(settings, {
        method: 'PATCH',
        url: `${url}/${id}`,
        headers: {
          ...version,
          'content-type': 'application/offset+octet-stream',
          'upload-offset': `${offset}`,
          ...(sha256 === null ? {} : { 'upload-checksum': `sha256 ${sha256}` }),
        },
        body,
        repeatable: false,
        attempt,
        signal,
        read: headersReader(stateOf),
      }),

    async remove(id, { repeatable, signal }) {
      try {
        const target = { method: 'DELETE', url: `${url}/${id}` } as const
        await send(settings, { ...target, headers: version, repeatable, signal, read: readNothing })
      } catch (error) {
        if (!isGone(error)) throw error
      }
    },
  }
}

/** Deletes an unfinished upload. */
export async function deleteUpload(
  settings: SendSettings,
  endpoints: Endpoints,
  id: string,
  { signal }: CallOptions,
): Promise<void> {
  if (!isUploadId(id)) throw new TypeError('expected the id of an upload')
  await tusRequests(settings, endpoints.resumableUploads, signal).remove(id, { repeatable: true, signal })
}

/** Whether the service reports that an upload or item does not exist or no longer exists. */
export const isGone = (error: unknown): boolean =>
  error instanceof AnswerError && (error.status === 404 || error.status === 410)

function idOf(location: string): string {
  const id = parseUrl(location, 'http://relative')?.pathname.split('/').at(-1) ?? ''
  if (isUploadId(id)) return id
  throw new ShapeError('an upload', 'Location', 'must contain its id')
}

function stateOf({ headers }: Response): TusState {
  const number = (name: string) => (/^\d+$/.test(headers.get(name) ?? '') ? Number(headers.get(name)) : null)
  const offset = number('upload-offset')
  if (offset === null) throw new ShapeError('an upload', 'Upload-Offset', 'must be a whole number')
  const item = headers.get('content-location')
  return {
    offset,
    length: number('upload-length'),
    metadata: headers.get('upload-metadata'),
    item: item === null ? null : itemOf(item),
  }
}

function itemOf(location: string): string {
  try {
    return mediaIdOf(new URL(location, 'http://relative'))
  } catch {
    throw new ShapeError('an upload', 'Content-Location', 'must be the URL of an item')
  }
}

/** Base64 of bytes, or of text in UTF-8. (`btoa` accepts only Latin-1 text.) */
export function base64(data: string | ArrayBuffer): string {
  const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : new Uint8Array(data)
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
}

interface Platform {
  readonly crypto: {
    readonly subtle?: { digest(algorithm: string, bytes: ArrayBuffer): Promise<ArrayBuffer> }
  }
}

/** The SHA-256 of bytes in base64. Null in pages that were not loaded over HTTPS, where browsers have no `crypto.subtle`. */
export async function sha256Base64(bytes: ArrayBuffer): Promise<string | null> {
  const { subtle } = (globalThis as Platform).crypto
  return subtle ? base64(await subtle.digest('SHA-256', bytes)) : null
}
