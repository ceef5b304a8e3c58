import type { AttemptTimer } from './attempt-timer.ts'
import { takesStreams } from './platform.ts'
import { bytesOf, type UploadContent } from './upload-content.ts'

/**
 * The progress of an upload. A retry starts at 0 again. A resumable upload continues at the offset of the service; its
 * first report is above 0 if an earlier upload was resumed.
 */
export interface UploadProgress {
  /** Bytes handed to the network. */
  readonly sent: number
  /** Total bytes; null for a stream, whose size is unknown. */
  readonly total: number | null
}

/** The body of an upload, for all attempts. */
export interface UploadBody {
  readonly content: UploadContent
  readonly onProgress: ((progress: UploadProgress) => void) | undefined
}

/** Small slices give frequent progress reports, and a slow connection accepts each one before the timeout. Bytes. */
const sliceSize = 65_536

/** A body for fetch: a stream that reports progress, or a Blob if fetch takes no streams. The timeout runs only while the network takes bytes. */
export function fetchBody(
  { content, onProgress }: UploadBody,
  timer: AttemptTimer,
): ReadableStream<Uint8Array> | Blob {
  if (content.blob && !takesStreams()) return content.blob()
  const chunks = content.chunks()
  let rest: Uint8Array | null = new Uint8Array(0)
  let sent = 0
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        // Node.js reads the body of an aborted request to its end unless the body fails.
        const stop = () => {
          controller.error(timer.signal.reason)
          chunks.return?.().catch(() => {})
        }
        timer.signal.addEventListener('abort', stop, { once: true })
      },
      async pull(controller) {
        timer.pause()
        try {
          onProgress?.({ sent, total: content.size })
          while (rest?.length === 0) rest = await nextBytes(chunks)
          timer.restart()
          if (!rest) return controller.close()
          const slice = rest.subarray(0, sliceSize)
          rest = rest.subarray(sliceSize)
          sent += slice.length
          controller.enqueue(slice)
        } catch (error) {
          // The source or `onProgress` failed, not the network.
          timer.abort(error)
          controller.error(error)
        }
      },
      cancel() {
        chunks.return?.().catch(() => {})
      },
    },
    { highWaterMark: 0 },
  )
}

/** The next chunk; null at the end. */
async function nextBytes(chunks: AsyncIterator<Uint8Array>): Promise<Uint8Array | null> {
  const { done, value } = await chunks.next()
  return done ? null : bytesOf(value)
}
