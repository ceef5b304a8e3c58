import { AnswerError } from './errors/answer-error.ts'
import { ShapeError } from './errors/shape-error.ts'
import { parseUrl } from './http-url.ts'
import { mediaIdOf } from './media-reference.ts'
import { type Sending, send, sendOnce } from './send.ts'
import type { UploadBody } from './upload-body.ts'
import type { Watch } from './watch.ts'

/** Where an upload stands, as the service tells it. */
export interface TusState {
  /** Bytes that the service has. */
  readonly offset: number
  /** Bytes in all; null where the service does not say. */
  readonly length: number | null
  /** Upload-Metadata as it was sent when the upload began; null where the service does not say. */
  readonly metadata: string | null
  /** The id of the item that the upload has become; null while it is none. */
  readonly item: string | null
}

export interface TusRequests {
  /** Begins an upload and gives its id; null where the service takes none in pieces. */
  begin(size: number, metadata: string): Promise<string | null>
  find(id: string): Promise<TusState>
  /** Sends a piece, once. `attempt` is what an error shall tell of the tries made. */
  append(id: string, piece: TusPiece, attempt: number): Promise<TusState>
  /** Ends an upload that nobody will go on with: tried once, in the background. */
  abandon(id: string): void
}

interface TusPiece {
  readonly offset: number
  readonly body: UploadBody
  /** Base64 of the SHA-256; null for none. */
  readonly sha256: string | null
}

const version = { 'tus-resumable': '1.0.0', accept: 'application/problem+json' }

/** How services answer that have no such URL. */
const notThere = new Set([404, 405, 501])

/** One segment of a path and no more, whatever a service or a store says. */
export const isUploadId = (id: string): boolean => /^[\w~-][\w.~=-]*$/.test(id)

/** The requests of tus 1.0.0 (docs/interface.md, Uploads in pieces), at the address of the client, wherever Location leads. */
export function tusRequests(sending: Sending, url: string, signal: AbortSignal | undefined): TusRequests {
  return {
    async begin(size, metadata) {
      try {
        return await send(sending, {
          method: 'POST',
          url,
          headers: {
            ...version,
            'upload-length': `${size}`,
            ...(metadata && { 'upload-metadata': metadata }),
          },
          // An upload whose answer was lost stays empty, and expires.
          repeatable: true,
          signal,
          read: headersReader(({ headers }) => idOf(headers.get('location') ?? '')),
        })
      } catch (error) {
        if (error instanceof AnswerError && notThere.has(error.status)) return null
        throw error
      }
    },

    find: (id) =>
      send(sending, {
        method: 'HEAD',
        url: `${url}/${id}`,
        headers: version,
        repeatable: true,
        signal,
        read: headersReader(stateOf),
      }),

    append: (id, { offset, body, sha256 }, attempt) =>
      sendOnce(
        sending,
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
        sending,
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

/** Whether the service says that it does not know an upload, or no longer. */
export const isGone = (error: unknown): boolean =>
  error instanceof AnswerError && (error.status === 404 || error.status === 410)

/** What such an answer says is in its headers. */
const headersReader =
  <T>(read: (answer: Response) => T) =>
  async (answer: Response, watch: Watch): Promise<T> => {
    watch.close()
    return read(answer)
  }

function idOf(location: string): string {
  const id = parseUrl(location, 'http://relative')?.pathname.split('/').at(-1) ?? ''
  if (isUploadId(id)) return id
  throw new ShapeError('an upload', 'Location', 'must name it')
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
