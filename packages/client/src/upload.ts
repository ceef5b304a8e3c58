import type { CallOptions } from './call-options.ts'
import { contentDisposition } from './content-disposition.ts'
import type { Endpoints } from './endpoints.ts'
import { type Media, readMedia } from './media.ts'
import { xhrOfPlatform } from './platform.ts'
import { randomKey } from './random-key.ts'
import { acceptJson, jsonReader } from './read-json.ts'
import type { ResumeStore } from './resume-store.ts'
import { type Sending, send } from './send.ts'
import type { UploadProgress } from './upload-body.ts'
import { isStream, type UploadContent, type UploadSource, uploadContent } from './upload-content.ts'
import { uploadInPieces } from './upload-in-pieces.ts'
import { uploadMemory } from './upload-memory.ts'
import { xhrTransport } from './xhr-transport.ts'

/** What an upload takes. */
export interface UploadOptions extends CallOptions {
  /** The name to keep. Default: that of a File; none for other sources. */
  readonly filename?: string | undefined
  /** The type to declare. Default: that of a File or Blob; none for other sources. */
  readonly contentType?: string | undefined
  /** Called as bytes leave: after each chunk in Node.js, as the browser tells in browsers. */
  readonly onProgress?: ((progress: UploadProgress) => void) | undefined
  /**
   * Files of more bytes than this go in pieces, and go on where a lost connection stopped them. 0 sends all in pieces,
   * `Infinity` none. Streams, whose size nobody knows, go as one request. Default: 16 777 216.
   */
  readonly piecesAbove?: number | undefined
  /**
   * Called before the last bytes of an upload in pieces are sent, so that its item appears only after what it resolves.
   * For callers that keep an order among uploads side by side.
   */
  readonly beforeLastPiece?: (() => Promise<void>) | undefined
  /** Remembers uploads in pieces, so that one that was cut short goes on when the same file is sent again. */
  readonly resume?: ResumeStore | undefined
  /** Tells the file from others for `resume`. Default: name, type and time of a File; other sources need one. */
  readonly fingerprint?: string | undefined
  /**
   * By which the service knows a repeat of an upload in one request, for 24 hours. Default: a key of its own for each
   * call; for a call that is to be repeated by another process, the same.
   */
  readonly idempotencyKey?: string | undefined
}

/** What uploads of one client share. */
export interface UploadParts {
  readonly sending: Sending
  readonly endpoints: Endpoints
  /** The keys of the uploads under way: of two of the same file, one alone can go on with what is remembered. */
  readonly resuming: Set<string>
}

/** Stores one file: in one request (docs/interface.md U3), or in pieces (R1 to R6). */
export async function uploadMedia(
  parts: UploadParts,
  source: UploadSource,
  options: UploadOptions,
): Promise<Media> {
  const { piecesAbove = 16 * 1024 * 1024, signal } = options
  if (!(piecesAbove >= 0)) throw new TypeError('piecesAbove must be bytes from 0')
  const content = await uploadContent(source, signal)
  const isLarge = !isStream(source) && (content.size ?? 0) > piecesAbove
  if (!isLarge) return await inOneRequest(parts, content, options)
  const media = await inPieces(parts, content, options)
  if (media) return media
  await options.beforeLastPiece?.()
  return await inOneRequest(parts, content, options)
}

/** Null where the service takes no files in pieces. */
async function inPieces(
  { sending, endpoints, resuming }: UploadParts,
  content: UploadContent,
  options: UploadOptions,
): Promise<Media | null> {
  const { filename, contentType, onProgress, signal, resume, beforeLastPiece } = options
  const blob = content.blob?.()
  if (!blob) return null
  const fingerprint = options.fingerprint ?? content.identity
  if (resume && fingerprint === null)
    throw new TypeError('resume needs a fingerprint, for the source is no File that has a name')
  signal?.throwIfAborted()

  const remembered =
    resume && fingerprint !== null
      ? await uploadMemory(resume, { url: endpoints.pieces, fingerprint, blob })
      : null
  const memory = remembered && !resuming.has(remembered.key) ? remembered : null
  if (memory) resuming.add(memory.key)
  try {
    return await uploadInPieces(tellingProgress(sending, onProgress), endpoints, {
      blob,
      name: filename ?? content.name,
      type: contentType ?? content.type,
      onProgress,
      signal,
      beforeLastPiece,
      memory,
    })
  } finally {
    if (memory) resuming.delete(memory.key)
  }
}

async function inOneRequest(
  { sending, endpoints }: UploadParts,
  content: UploadContent,
  { filename, contentType, onProgress, signal, idempotencyKey }: UploadOptions,
): Promise<Media> {
  const name = filename ?? content.name
  const type = contentType ?? content.type
  const repeatable = content.blob !== null
  const key = idempotencyKey ?? (repeatable ? randomKey() : null)
  const headers: Record<string, string> = {
    ...acceptJson,
    ...(type === null ? {} : { 'content-type': type }),
    ...(name === null ? {} : { 'content-disposition': contentDisposition(name) }),
    // One key for all tries of this upload, so that the service can tell a repeat from another file.
    ...(key === null ? {} : { 'idempotency-key': key }),
  }
  try {
    return await send(tellingProgress(sending, onProgress), {
      method: 'POST',
      url: endpoints.uploads,
      headers,
      body: { content, onProgress },
      repeatable,
      signal,
      read: jsonReader('a media object', readMedia),
    })
  } catch (error) {
    content.release()
    throw error
  }
}

/** In browsers XMLHttpRequest alone tells how bytes leave; what has no body goes by fetch in any case. */
export function tellingProgress(sending: Sending, onProgress: UploadOptions['onProgress']): Sending {
  const Xhr = onProgress && sending.platformFetch ? xhrOfPlatform() : undefined
  if (!Xhr) return sending
  const [byXhr, byFetch] = [xhrTransport(Xhr), sending.transport]
  return { ...sending, transport: (hop, watch) => (hop.body ? byXhr : byFetch)(hop, watch) }
}
