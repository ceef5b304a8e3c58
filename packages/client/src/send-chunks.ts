import { sha256Base64 } from './base64.ts'
import { ShapeError } from './errors/shape-error.ts'
import { pause } from './pause.ts'
import { delayAfter } from './retry.ts'
import type { SendSettings } from './send.ts'
import type { TusRequests, TusState } from './tus-requests.ts'
import type { UploadProgress } from './upload-body.ts'
import { contentOfBytes } from './upload-content.ts'

/** A chunk with a checksum is stored whole or not at all, so chunks become smaller when connections break. Bytes. */
const [minChunkSize, maxChunkSize] = [256 * 1024, 8 * 1024 * 1024]

/**
 * Transient statuses of chunks, besides those of delayAfter: a conflict with another request (409, 423), a wrong checksum (460), an error
 * of the service (500).
 */
const transientForChunks = new Set([409, 423, 460, 500])

/**
 * Sends the missing bytes of an upload and returns the id of the item. After a lost response or a transient error it
 * requests the upload's offset and continues there. The count of attempts restarts whenever the offset grows.
 */
export async function sendChunks(
  requests: TusRequests,
  { id, state }: { readonly id: string; readonly state: TusState },
  options: {
    readonly settings: SendSettings
    readonly blob: Blob
    readonly onProgress: ((progress: UploadProgress) => void) | undefined
    readonly signal: AbortSignal | undefined
    /** Called before the last chunk, which creates the item. */
    readonly beforeLastChunk: (() => Promise<void>) | undefined
  },
): Promise<string> {
  const { settings, blob, onProgress, signal, beforeLastChunk } = options
  const total = blob.size
  let { offset, item } = state
  let size = maxChunkSize
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
    try {
      const newState = await requests.append(id, { offset, body, sha256: await sha256Base64(bytes) }, attempt)
      if (newState.offset <= offset || newState.offset > total)
        throw new ShapeError('an upload', 'Upload-Offset', `must not be ${newState.offset} here`)
      if (newState.offset === total && newState.item === null)
        throw new ShapeError('an upload', 'Content-Location', 'must name the item')
      ;({ offset, item } = newState)
      attempt = 1
      size = Math.min(maxChunkSize, size * 2)
    } catch (error) {
      const delay = delayAfter(error, attempt, settings.retry, transientForChunks)
      if (delay === null) throw error
      settings.retry.onRetry(error, delay)
      await pause(delay, signal)
      const newState = await requests.find(id)
      attempt = newState.offset > offset ? 1 : attempt + 1
      ;({ offset, item } = newState)
      size = Math.max(minChunkSize, size / 2)
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
