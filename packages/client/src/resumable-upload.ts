import { ShapeError } from './errors.ts'
import type { Labels } from './labels.ts'
import { describeMedia, type Focus, type Media } from './media.ts'
import type { ResumeStore } from './resume-store.ts'
import { delayAfter, pause } from './retry.ts'
import type { SendSettings } from './send.ts'
import type { UploadProgress } from './transport.ts'
import {
  base64,
  isGone,
  isUploadId,
  sha256Base64,
  type TusRequests,
  type TusState,
  tusRequests,
} from './tus.ts'
import { contentOfBytes } from './upload-content.ts'
import type { Endpoints } from './urls.ts'

/** A file that is sent in chunks. */
export interface ChunkedUpload {
  readonly blob: Blob
  readonly name: string | null
  readonly type: string | null
  readonly onProgress: ((progress: UploadProgress) => void) | undefined
  readonly signal: AbortSignal | undefined
  readonly beforeLastChunk: (() => Promise<void>) | undefined
  readonly expiresAt: Date | undefined
  readonly labels: Labels | undefined
  readonly focus: Focus | undefined
  readonly firstChunkSize: number | undefined
  /** Null if an upload that fails will not be resumed. */
  readonly resumeEntry: ResumeEntry | null
}

/**
 * Uploads a file with tus and returns its media object; null if the service has no resumable uploads. Resumes an earlier
 * upload of the same file if it is stored and the service still has it. If that upload was finished, its item is returned.
 */
export async function uploadInChunks(
  settings: SendSettings,
  endpoints: Endpoints,
  file: ChunkedUpload,
): Promise<Media | null> {
  const { blob, name, type, onProgress, signal, expiresAt, labels, focus, resumeEntry } = file
  const requests = tusRequests(settings, endpoints.resumableUploads, signal)
  const metadata = Object.entries({
    filename: name,
    filetype: type,
    expires_at: expiresAt?.toISOString() ?? null,
    labels: labels === undefined ? null : JSON.stringify(labels),
    focus: focus === undefined ? null : JSON.stringify(focus),
  })
    .flatMap(([key, value]) => (value === null ? [] : [`${key} ${base64(value)}`]))
    .join(',')

  /** The stored upload, if it has the length and the metadata of this file. */
  async function findStored(): Promise<{ id: string; state: TusState } | null> {
    const id = (await resumeEntry?.get()) ?? null
    if (id === null || !isUploadId(id)) return null
    const state = await unlessGone(requests.find(id))
    return state?.length === blob.size && (state.metadata ?? '') === metadata ? { id, state } : null
  }

  async function create(): Promise<{ id: string; state: TusState } | null> {
    const id = await requests.create(blob.size, metadata)
    if (id === null) return null
    await resumeEntry?.set(id)
    return { id, state: { offset: 0, length: blob.size, metadata, item: null } }
  }

  let upload = await findStored()
  if (upload?.state.item) {
    const media = await unlessGone(describeMedia(settings, endpoints, upload.state.item, { signal }))
    if (media) {
      onProgress?.({ sent: blob.size, total: blob.size })
      await resumeEntry?.remove()
      return media
    }
    // The item has been deleted since, so the file is uploaded again.
    upload = null
  }
  for (let round = 1; ; round += 1) {
    upload ??= await create()
    if (upload === null) return null
    try {
      const item = await sendChunks(settings, requests, upload, file)
      const media = await describeMedia(settings, endpoints, item, { signal })
      await resumeEntry?.remove()
      return media
    } catch (error) {
      // Once, in the background, also after an abort: it expires anyway.
      if (resumeEntry === null)
        requests.remove(upload.id, { repeatable: false, signal: undefined }).catch(() => {})
      // The upload has expired or was deleted: start again, but only a limited number of times.
      if (!isGone(error) || round >= settings.retry.attempts) throw error
      upload = null
    }
  }
}

/** Null if the service reports that it does not exist. */
async function unlessGone<T>(found: Promise<T>): Promise<T | null> {
  try {
    return await found
  } catch (error) {
    if (isGone(error)) return null
    throw error
  }
}

/**
 * A chunk with a checksum is stored whole or not at all: what is sent of a chunk is lost when the upload is interrupted. So chunks become
 * smaller when connections break, and larger only while they are sent fast. Bytes.
 */
const [minChunkSize, maxChunkSize] = [256 * 1024, 8 * 1024 * 1024]

/** A chunk that takes longer is not followed by a larger one. Milliseconds. */
const maxChunkTime = 4000

/**
 * Transient statuses of chunks, besides those of delayAfter: a conflict with another request (409, 423), a wrong checksum (460), an error
 * of the service (500).
 */
const transientForChunks = new Set([409, 423, 460, 500])

/**
 * Sends the missing bytes of an upload and returns the id of the item. After a lost response or a transient error it
 * requests the upload's offset and continues there. The count of attempts restarts whenever the offset grows.
 */
async function sendChunks(
  settings: SendSettings,
  requests: TusRequests,
  { id, state }: { readonly id: string; readonly state: TusState },
  { blob, onProgress, signal, beforeLastChunk, firstChunkSize = maxChunkSize }: ChunkedUpload,
): Promise<string> {
  const total = blob.size
  let { offset, item } = state
  let size = Math.min(maxChunkSize, Math.max(minChunkSize, firstChunkSize))
  /** The bytes that the last call of onProgress has reported; -1 before the first one. */
  let reported = -1
  function reportProgress(sent: number): void {
    if (sent !== reported) onProgress?.({ sent, total })
    reported = sent
  }

  reportProgress(offset)
  for (let attempt = 1; item === null; ) {
    const end = Math.min(total, offset + size)
    if (end === total) await beforeLastChunk?.()
    const bytes = await read(blob, offset, end)
    const body = {
      content: contentOfBytes(new Uint8Array(bytes)),
      onProgress: ({ sent }: UploadProgress) => reportProgress(offset + sent),
    }
    const startedAt = performance.now()
    try {
      const newState = await requests.append(id, { offset, body, sha256: await sha256Base64(bytes) }, attempt)
      if (newState.offset <= offset || newState.offset > total)
        throw new ShapeError('an upload', 'Upload-Offset', `must not be ${newState.offset} here`)
      if (newState.offset === total && newState.item === null)
        throw new ShapeError('an upload', 'Content-Location', 'must name the item')
      ;({ offset, item } = newState)
      attempt = 1
      if (performance.now() - startedAt < maxChunkTime) size = Math.min(maxChunkSize, size * 2)
    } catch (error) {
      const delay = delayAfter(error, attempt, settings.retry, transientForChunks)
      if (delay === null) throw error
      settings.retry.onRetry(error, delay)
      await pause(delay, signal)
      const newState = await requests.find(id)
      attempt = newState.offset > offset ? 1 : attempt + 1
      ;({ offset, item } = newState)
      size = Math.max(minChunkSize, Math.floor(size / 2))
    }
    reportProgress(offset)
  }
  return item
}

async function read(blob: Blob, start: number, end: number): Promise<ArrayBuffer> {
  const bytes = await blob.slice(start, end).arrayBuffer()
  // Node.js Blobs of files above 2 GB return fewer bytes than their size (nodejs/node#52585).
  if (bytes.byteLength !== end - start)
    throw new TypeError(`the source did not return its bytes from ${start} to ${end}`)
  return bytes
}

/** The entry of one upload in a resume store. */
export interface ResumeEntry {
  get(): Promise<string | null>
  set(id: string): Promise<void>
  remove(): Promise<void>
}

/** The size of each of the three samples of a file. Bytes. */
const sampleSize = 65_536

/**
 * The entry of the upload of this file to this URL. In addition to the fingerprint, its key contains the size and a hash of
 * samples, so that an upload never continues with the bytes of another file.
 */
export async function createResumeEntry(
  store: ResumeStore,
  { url, fingerprint, blob }: { readonly url: string; readonly fingerprint: string; readonly blob: Blob },
): Promise<ResumeEntry & { readonly key: string }> {
  const starts = [0, Math.floor(blob.size / 2), Math.max(0, blob.size - sampleSize)]
  const samples = await Promise.all(
    starts.map((start) => blob.slice(start, start + sampleSize).arrayBuffer()),
  )
  const key = [url, blob.size, await sha256Base64(await new Blob(samples).arrayBuffer()), fingerprint].join(
    ' ',
  )
  return {
    key,
    get: async () => (await store.get(key)) ?? null,
    set: async (id) => await store.set(key, id),
    remove: async () => await store.remove(key),
  }
}
