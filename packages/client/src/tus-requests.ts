import type { AttemptTimer } from './attempt-timer.ts'
import { AnswerError } from './errors/answer-error.ts'
import { ShapeError } from './errors/shape-error.ts'
import { parseUrl } from './http-url.ts'
import { mediaIdOf } from './media-reference.ts'
import { type SendSettings, send, sendOnce } from './send.ts'
import type { UploadBody } from './upload-body.ts'

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
  /** Deletes an upload that will not be resumed. One attempt, in the background. */
  abandon(id: string): void
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
      sendOnce(
        settings,
        {
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
          signal,
          read: headersReader(stateOf),
        },
        attempt,
      ),

    abandon(id) {
      sendOnce(
        settings,
        {
          method: 'DELETE',
          url: `${url}/${id}`,
          headers: version,
          repeatable: false,
          signal: undefined,
          read: headersReader(() => {}),
        },
        1,
      ).catch(() => {})
    },
  }
}

/** Whether the service reports that an upload or item does not exist or no longer exists. */
export const isGone = (error: unknown): boolean =>
  error instanceof AnswerError && (error.status === 404 || error.status === 410)

/** Creates a reader of responses whose content is in the headers. */
const headersReader =
  <T>(read: (response: Response) => T) =>
  async (response: Response, timer: AttemptTimer): Promise<T> => {
    timer.close()
    return read(response)
  }

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
