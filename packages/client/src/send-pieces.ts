import { ShapeError } from './errors/shape-error.ts'
import { pause } from './pause.ts'
import { delayAfter } from './retry.ts'
import type { Sending } from './send.ts'
import { sha256 } from './sha256.ts'
import type { TusRequests, TusState } from './tus-requests.ts'
import type { UploadProgress } from './upload-body.ts'
import { contentOfBytes } from './upload-content.ts'

/** A piece with a checksum counts whole or not at all, so pieces shrink where connections break. Bytes. */
const [smallest, largest] = [256 * 1024, 8 * 1024 * 1024]

/** Passing for a piece, beside what passes for every call: it met another one, arrived damaged, or the service stumbled. */
const passing = new Set([409, 423, 460, 500])

/**
 * Sends what the service lacks of an upload, and gives the id of the item. After a lost answer or a passing refusal it
 * asks where the upload stands and goes on from there; tries are counted anew whenever it moves.
 */
export async function sendPieces(
  requests: TusRequests,
  { id, state }: { readonly id: string; readonly state: TusState },
  source: {
    readonly sending: Sending
    readonly blob: Blob
    readonly onProgress: ((progress: UploadProgress) => void) | undefined
    readonly signal: AbortSignal | undefined
    /** Called before the piece that makes the item. */
    readonly beforeLastPiece: (() => Promise<void>) | undefined
  },
): Promise<string> {
  const { sending, blob, onProgress, signal, beforeLastPiece } = source
  const total = blob.size
  let { offset, item } = state
  let size = largest
  let told = -1
  function tell(sent: number): void {
    if (sent !== told) onProgress?.({ sent, total })
    told = sent
  }

  tell(offset)
  for (let attempt = 1; item === null; ) {
    const end = Math.min(total, offset + size)
    if (end === total) await beforeLastPiece?.()
    const bytes = await read(blob, offset, end)
    const body = {
      content: contentOfBytes(new Uint8Array(bytes)),
      onProgress: ({ sent }: UploadProgress) => tell(offset + sent),
    }
    try {
      const now = await requests.append(id, { offset, body, sha256: await sha256(bytes) }, attempt)
      if (now.offset <= offset || now.offset > total)
        throw new ShapeError('an upload', 'Upload-Offset', `must not be ${now.offset} here`)
      if (now.offset === total && now.item === null)
        throw new ShapeError('an upload', 'Content-Location', 'must name the item')
      ;({ offset, item } = now)
      attempt = 1
      size = Math.min(largest, size * 2)
    } catch (error) {
      const delay = delayAfter(error, attempt, sending.retry, passing)
      if (delay === null) throw error
      await pause(delay, signal)
      const now = await requests.find(id)
      attempt = now.offset > offset ? 1 : attempt + 1
      ;({ offset, item } = now)
      size = Math.max(smallest, size / 2)
    }
    tell(offset)
  }
  return item
}

async function read(blob: Blob, start: number, end: number): Promise<ArrayBuffer> {
  const bytes = await blob.slice(start, end).arrayBuffer()
  // Blobs of Node.js for files of more than 2 GB do this (nodejs/node#52585).
  if (bytes.byteLength !== end - start)
    throw new TypeError(`the source has no bytes from ${start} to ${end}, and says that it has`)
  return bytes
}
