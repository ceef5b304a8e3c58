import { base64 } from './base64.ts'
import { describeMedia } from './describe-media.ts'
import type { Endpoints } from './endpoints.ts'
import type { Media } from './media.ts'
import type { ResumeEntry } from './resume-entry.ts'
import type { SendSettings } from './send.ts'
import { sendChunks } from './send-chunks.ts'
import { isGone, isUploadId, type TusState, tusRequests } from './tus-requests.ts'
import type { UploadProgress } from './upload-body.ts'

/** A file that is sent in chunks. */
export interface ChunkedUpload {
  readonly blob: Blob
  readonly name: string | null
  readonly type: string | null
  readonly onProgress: ((progress: UploadProgress) => void) | undefined
  readonly signal: AbortSignal | undefined
  readonly beforeLastChunk: (() => Promise<void>) | undefined
  readonly expiresAt: Date | undefined
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
  { blob, name, type, onProgress, signal, beforeLastChunk, expiresAt, resumeEntry }: ChunkedUpload,
): Promise<Media | null> {
  const requests = tusRequests(settings, endpoints.resumableUploads, signal)
  const metadata = Object.entries({
    filename: name,
    filetype: type,
    expires_at: expiresAt?.toISOString() ?? null,
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
      const item = await sendChunks(requests, upload, { settings, blob, onProgress, signal, beforeLastChunk })
      const media = await describeMedia(settings, endpoints, item, { signal })
      await resumeEntry?.remove()
      return media
    } catch (error) {
      if (resumeEntry === null) requests.abandon(upload.id)
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
