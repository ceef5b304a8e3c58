import type { CallOptions } from './client-options.ts'
import { sendJson } from './json.ts'
import { type Labels, labelsHeader } from './labels.ts'
import { type Focus, type Media, readManyMedia, readMedia } from './media.ts'
import { createResumeEntry, uploadInChunks } from './resumable-upload.ts'
import type { ResumeStore } from './resume-store.ts'
import type { SendSettings } from './send.ts'
import { type UploadProgress, xhrTransport } from './transport.ts'
import {
  isBlob,
  isStream,
  type UploadContent,
  type UploadSource,
  uploadContent,
  xhrOfPlatform,
} from './upload-content.ts'
import type { Endpoints } from './urls.ts'

/** The options of an upload. */
export interface UploadOptions extends CallOptions {
  /** The name to store. Default: the name of a File; none for other sources. */
  readonly filename?: string | undefined
  /** The type to declare. Default: the type of a File or Blob; none for other sources. */
  readonly contentType?: string | undefined
  /** When the item expires. Default: by the settings of the bucket. */
  readonly expiresAt?: Date | undefined
  /** The labels of the item. Default: none. */
  readonly labels?: Labels | undefined
  /** The point of a picture that sizes keep that cut. Default: none. */
  readonly focus?: Focus | undefined
  /** Called while bytes are sent: for each slice of 64 KiB in Node.js, for each progress event in browsers. */
  readonly onProgress?: ((progress: UploadProgress) => void) | undefined
  /**
   * Larger files are sent as resumable uploads, in chunks. 0 sends all files in chunks, `Infinity` none. Streams are sent
   * in one request, because their size is unknown. Bytes. Default: 16 777 216.
   */
  readonly piecesAbove?: number | undefined
  /**
   * Bytes of the first chunk of a resumable upload, from 262 144 to 8 388 608. An interruption loses what was sent of one chunk. A chunk
   * that is sent within four seconds is followed by a larger one. Default: 8 388 608.
   */
  readonly firstChunkSize?: number | undefined
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
      labels: options.labels,
      focus: options.focus,
      firstChunkSize: options.firstChunkSize,
      resumeEntry,
    })
  } finally {
    if (resumeEntry) resuming.delete(resumeEntry.key)
  }
}

async function uploadInOneRequest(
  { settings, endpoints }: UploadParts,
  content: UploadContent,
  { filename, contentType, expiresAt, labels, focus, onProgress, signal, idempotencyKey }: UploadOptions,
): Promise<Media> {
  const name = filename ?? content.name
  const type = contentType ?? content.type
  const repeatable = content.blob !== null
  const key = idempotencyKey ?? (repeatable ? randomKey() : null)
  const headers: Record<string, string> = {
    ...(type === null ? {} : { 'content-type': type }),
    ...(name === null ? {} : { 'content-disposition': contentDisposition(name) }),
    ...(expiresAt && { 'mediabucket-expires-at': expiresAt.toISOString() }),
    ...labelsHeader(labels),
    ...(focus && { 'mediabucket-focus': JSON.stringify(focus) }),
    // One key for all attempts of this upload, so that the service recognizes a retry.
    ...(key === null ? {} : { 'idempotency-key': key }),
  }
  try {
    return await sendJson(withProgress(settings, onProgress), {
      method: 'POST',
      url: endpoints.uploads,
      headers,
      body: { content, onProgress },
      repeatable,
      signal,
      what: 'a media object',
      read: readMedia,
    })
  } catch (error) {
    content.release()
    throw error
  }
}

/** Sends bodies with XMLHttpRequest in browsers if progress is requested, because fetch does not report it. */
function withProgress(settings: SendSettings, onProgress: UploadOptions['onProgress']): SendSettings {
  const Xhr = onProgress && settings.platformFetch ? xhrOfPlatform() : undefined
  if (!Xhr) return settings
  const [byXhr, byFetch] = [xhrTransport(Xhr), settings.transport]
  return { ...settings, transport: (hop, timer) => (hop.body ? byXhr : byFetch)(hop, timer) }
}

/** One file of a form. */
export interface FormFile {
  readonly source: Blob | Uint8Array
  readonly filename: string
  /** The type to declare. Default: that of a Blob; `application/octet-stream` for bytes. */
  readonly contentType?: string | undefined
}

/** The options of an upload of several files. */
export interface UploadAllOptions extends CallOptions {
  /** When the items expire. Default: by the settings of the bucket. */
  readonly expiresAt?: Date | undefined
  /** The labels of the items. Default: none. */
  readonly labels?: Labels | undefined
  /** Reports bytes of the whole form, including part headers. */
  readonly onProgress?: ((progress: UploadProgress) => void) | undefined
  /** Identifies repeated requests of one upload, for 24 hours. Default: a random key for each call. */
  readonly idempotencyKey?: string | undefined
}

/** Stores several files with one form (docs/interface.md U1, U2, U4). */
export async function uploadForm(
  { settings, endpoints }: UploadParts,
  files: readonly FormFile[],
  { expiresAt, labels, onProgress, signal, idempotencyKey }: UploadAllOptions,
): Promise<readonly Media[]> {
  requireFiles(files)
  if (files.length === 0) return []
  const boundary = `mediabucket-${randomKey()}`
  const content = await uploadContent(formBlob(files, boundary), signal)
  return await sendJson(withProgress(settings, onProgress), {
    method: 'POST',
    url: endpoints.uploads,
    headers: {
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'idempotency-key': idempotencyKey ?? randomKey(),
      ...(expiresAt && { 'mediabucket-expires-at': expiresAt.toISOString() }),
      ...labelsHeader(labels),
    },
    body: { content, onProgress },
    repeatable: true,
    signal,
    what: files.length === 1 ? 'a media object' : 'media objects',
    read: files.length === 1 ? (response) => [readMedia(response)] : readManyMedia,
  })
}

function requireFiles(files: readonly FormFile[]): void {
  if (!Array.isArray(files)) throw new TypeError('uploadAll takes an array of { source, filename }')
  for (const [index, { source, filename }] of files.entries()) {
    if (!(typeof source === 'object' && (isBlob(source) || ArrayBuffer.isView(source))))
      throw new TypeError(`files[${index}].source must be a File, Blob or Uint8Array`)
    if (typeof filename !== 'string')
      throw new TypeError(`files[${index}].filename is missing: uploadAll takes { source, filename }`)
  }
}

/** Built here because FormData changes quotes and line ends in names. */
function formBlob(files: readonly FormFile[], boundary: string): Blob {
  const parts = files.flatMap(({ source, filename, contentType }) => {
    const type = contentType || ('type' in source && source.type) || 'application/octet-stream'
    if (/[\r\n]/.test(type)) throw new TypeError('contentType must be one line')
    const head = [
      `--${boundary}`,
      `Content-Disposition: form-data; name="file"; ${filenameParameter(filename)}`,
      `Content-Type: ${type}`,
    ]
    return [`${head.join('\r\n')}\r\n\r\n`, source as Blob | Uint8Array<ArrayBuffer>, '\r\n']
  })
  return new Blob([...parts, `--${boundary}--\r\n`])
}

/** Names that need no escape between quotes. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

/** Characters that encodeURIComponent does not escape and RFC 8187 requires to be escaped. */
const unsafe = /['()*]/g

/** The header with a file's name (RFC 6266; RFC 8187 for names that are not plain ASCII). */
export const contentDisposition = (filename: string): string => `attachment; ${filenameParameter(filename)}`

/** The parameter with a file's name. */
function filenameParameter(filename: string): string {
  if (plain.test(filename) && !filename.includes('%')) return `filename="${filename}"`
  // encodeURIComponent throws on half a surrogate pair, which has no UTF-8 form.
  const escaped = encodeURIComponent(filename.replace(/\p{Surrogate}/gu, '\ufffd')).replace(
    unsafe,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `filename*=UTF-8''${escaped}`
}

/** 128 random bits, in hex. (Pages that were not loaded over HTTPS have no `crypto.randomUUID`.) */
export const randomKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join(
    '',
  )
