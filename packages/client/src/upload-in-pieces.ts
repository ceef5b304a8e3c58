import { base64 } from './base64.ts'
import { describeMedia } from './describe-media.ts'
import type { Endpoints } from './endpoints.ts'
import type { Media } from './media.ts'
import type { Sending } from './send.ts'
import { sendPieces } from './send-pieces.ts'
import { isGone, isUploadId, type TusState, tusRequests } from './tus-requests.ts'
import type { UploadProgress } from './upload-body.ts'
import type { UploadMemory } from './upload-memory.ts'

/** A file that is sent in pieces. */
export interface PiecewiseUpload {
  readonly blob: Blob
  readonly name: string | null
  readonly type: string | null
  readonly onProgress: ((progress: UploadProgress) => void) | undefined
  readonly signal: AbortSignal | undefined
  readonly beforeLastPiece: (() => Promise<void>) | undefined
  /** Null where nobody will go on with an upload that fails. */
  readonly memory: UploadMemory | null
}

/**
 * Sends a file by tus and gives its media object; null where the service takes no files in pieces. Goes on where an
 * earlier upload of the same file stopped, if one is remembered and the service still has it; one that was finished
 * gives its item.
 */
export async function uploadInPieces(
  sending: Sending,
  endpoints: Endpoints,
  { blob, name, type, onProgress, signal, beforeLastPiece, memory }: PiecewiseUpload,
): Promise<Media | null> {
  const requests = tusRequests(sending, endpoints.pieces, signal)
  const metadata = Object.entries({ filename: name, filetype: type })
    .flatMap(([key, value]) => (value === null ? [] : [`${key} ${base64(value)}`]))
    .join(',')

  /** The upload that is remembered, as far as it is one of this very file. */
  async function recall(): Promise<{ id: string; state: TusState } | null> {
    const id = (await memory?.get()) ?? null
    if (id === null || !isUploadId(id)) return null
    const state = await unlessGone(requests.find(id))
    return state?.length === blob.size && (state.metadata ?? '') === metadata ? { id, state } : null
  }

  async function begin(): Promise<{ id: string; state: TusState } | null> {
    const id = await requests.begin(blob.size, metadata)
    if (id === null) return null
    await memory?.set(id)
    return { id, state: { offset: 0, length: blob.size, metadata, item: null } }
  }

  let upload = await recall()
  if (upload?.state.item) {
    const media = await unlessGone(describeMedia(sending, endpoints, upload.state.item, signal))
    if (media) {
      onProgress?.({ sent: blob.size, total: blob.size })
      await memory?.forget()
      return media
    }
    // The item has been deleted since: whoever sends the file again wants it there.
    upload = null
  }
  for (let round = 1; ; round += 1) {
    upload ??= await begin()
    if (upload === null) return null
    try {
      const item = await sendPieces(requests, upload, { sending, blob, onProgress, signal, beforeLastPiece })
      const media = await describeMedia(sending, endpoints, item, signal)
      await memory?.forget()
      return media
    } catch (error) {
      if (memory === null) requests.abandon(upload.id)
      // It has expired, or somebody ended it. Not for ever: a service may forget every time.
      if (!isGone(error) || round >= sending.retry.attempts) throw error
      upload = null
    }
  }
}

/** Null for what the service does not know, or no longer. */
async function unlessGone<T>(found: Promise<T>): Promise<T | null> {
  try {
    return await found
  } catch (error) {
    if (isGone(error)) return null
    throw error
  }
}
