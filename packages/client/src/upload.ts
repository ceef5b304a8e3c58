import type { CallOptions } from './client-options.ts'
import { contentDisposition } from './content-disposition.ts'
import type { Endpoints } from './endpoints.ts'
import { type Media, readMedia } from './media.ts'
import { xhrOfPlatform } from './platform.ts'
import { randomKey } from './random-key.ts'
import { acceptJson, jsonReader } from './read-json.ts'
import { createResumeEntry } from './resume-entry.ts'
import type { ResumeStore } from './resume-store.ts'
import { type SendSettings, send } from './send.ts'
import type { UploadProgress } from './upload-body.ts'
import { isStream, type UploadContent, type UploadSource, uploadContent } from './upload-content.ts'
import { uploadInChunks } from './upload-in-chunks.ts'
import { xhrTransport } from './xhr-transport.ts'

/** The options of an upload. */
export interface UploadOptions extends CallOptions {
  /** The name to store. Default: the name of a File; none for other sources. */
  readonly filename?: string | undefined
  /** The type to declare. Default: the type of a File or Blob; none for other sources. */
  readonly contentType?: string | undefined
  /** When the item expires. Default: by the settings of the bucket. */
  readonly expiresAt?: Date | undefined
  /** Called while bytes are sent: for each slice of 64 KiB in Node.js, for each progress event in browsers. */
  readonly onProgress?: ((progress: UploadProgress) => void) | undefined
  /**
   * Larger files are sent as resumable uploads, in chunks. 0 sends all files in chunks, `Infinity` none. Streams are sent
   * in one request, because their size is unknown. Bytes. Default: 16 777 216.
   */
  readonly piecesAbove?: number | undefined
  /**
   * Awaited before the last chunk of a resumable upload is sent, which creates the item. Use it to keep an order among
   * concurrent uploads.
   */
  readonly beforeLastChunk?: (() => Promise<void>) | undefined
  /** Stores unfinished resumable uploads, so that an interrupted upload is resumed when the same file is uploaded again. */
  readonly resume?: ResumeStore | undefined
  /** Identifies the file for `resume`. Default: name, type and time of a File; required for other sources. */
  readonly fingerprint?: string | undefined
  /**
   * Identifies repeated requests of an upload in one request, for 24 hours. Default: a random key for each call. Set it
   * if another process may repeat the call.
   */
  readonly idempotencyKey?: string | undefined
}

/** Shared by all uploads of one client. */
export interface UploadParts {
  readonly settings: SendSettings
  readonly endpoints: Endpoints
  /** The keys of resume entries in use: only one of two concurrent uploads of a file uses the entry. */
  readonly resuming: Set<string>
}

/** Stores one file, in one request (docs/interface.md U3) or as a resumable upload (R1 to R6). */
export async function uploadMedia(
  parts: UploadParts,
  source: UploadSource,
  options: UploadOptions,
): Promise<Media> {
  const { piecesAbove = 16 * 1024 * 1024, signal } = options
  if (!(piecesAbove >= 0)) throw new TypeError('piecesAbove must be a number of bytes from 0')
  const content = await uploadContent(source, signal)
  const isLarge = !isStream(source) && (content.size ?? 0) > piecesAbove
  if (!isLarge) return await uploadInOneRequest(parts, content, options)
  const media = await uploadResumable(parts, content, options)
  if (media) return media
  await options.beforeLastChunk?.()
  return await uploadInOneRequest(parts, content, options)
}

/** Null if the service has no resumable uploads, or if the content is a stream. */
async function uploadResumable(
  { settings, endpoints, resuming }: UploadParts,
  content: UploadContent,
  options: UploadOptions,
): Promise<Media | null> {
  const { filename, contentType, onProgress, signal, resume, beforeLastChunk } = options
  const blob = content.blob?.()
  if (!blob) return null
  const fingerprint = options.fingerprint ?? content.identity
  if (resume && fingerprint === null)
    throw new TypeError('resume needs a fingerprint, because the source is not a File')
  signal?.throwIfAborted()

  const stored =
    resume && fingerprint !== null
      ? await createResumeEntry(resume, { url: endpoints.resumableUploads, fingerprint, blob })
      : null
  const resumeEntry = stored && !resuming.has(stored.key) ? stored : null
  if (resumeEntry) resuming.add(resumeEntry.key)
  try {
    return await uploadInChunks(withProgress(settings, onProgress), endpoints, {
      blob,
      name: filename ?? content.name,
      type: contentType ?? content.type,
      onProgress,
      signal,
      beforeLastChunk,
      expiresAt: options.expiresAt,
      resumeEntry,
    })
  } finally {
    if (resumeEntry) resuming.delete(resumeEntry.key)
  }
}

async function uploadInOneRequest(
  { settings, endpoints }: UploadParts,
  content: UploadContent,
  { filename, contentType, expiresAt, onProgress, signal, idempotencyKey }: UploadOptions,
): Promise<Media> {
  const name = filename ?? content.name
  const type = contentType ?? content.type
  const repeatable = content.blob !== null
  const key = idempotencyKey ?? (repeatable ? randomKey() : null)
  const headers: Record<string, string> = {
    ...acceptJson,
    ...(type === null ? {} : { 'content-type': type }),
    ...(name === null ? {} : { 'content-disposition': contentDisposition(name) }),
    ...(expiresAt && { 'mediabucket-expires-at': expiresAt.toISOString() }),
    // One key for all attempts of this upload, so that the service recognizes a retry.
    ...(key === null ? {} : { 'idempotency-key': key }),
  }
  try {
    return await send(withProgress(settings, onProgress), {
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

/** Sends bodies with XMLHttpRequest in browsers if progress is requested, because fetch does not report it. */
export function withProgress(settings: SendSettings, onProgress: UploadOptions['onProgress']): SendSettings {
  const Xhr = onProgress && settings.platformFetch ? xhrOfPlatform() : undefined
  if (!Xhr) return settings
  const [byXhr, byFetch] = [xhrTransport(Xhr), settings.transport]
  return { ...settings, transport: (hop, timer) => (hop.body ? byXhr : byFetch)(hop, timer) }
}
