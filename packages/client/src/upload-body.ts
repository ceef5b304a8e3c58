import { takesStreams } from './platform.ts'
import { bytesOf, type UploadContent } from './upload-content.ts'
import type { Watch } from './watch.ts'

/**
 * How far an upload is. A try that is repeated begins at 0 again; an upload in pieces goes back to what the service has,
 * and its first call tells where it begins: above 0 when it was resumed.
 */
export interface UploadProgress {
  /** Bytes handed to the network. */
  readonly sent: number
  /** Bytes in all; null for a stream, whose end alone tells. */
  readonly total: number | null
}

/** The body of an upload, for one try or several. */
export interface UploadBody {
  readonly content: UploadContent
  readonly onProgress: ((progress: UploadProgress) => void) | undefined
}

/** So small that progress shows, and that a slow connection is not taken for a silent one. Bytes. */
const sliceSize = 65_536

/** A body for fetch; where it streams, it reports progress, and silence counts only while the network has the word. */
export function fetchBody(
  { content, onProgress }: UploadBody,
  watch: Watch,
): ReadableStream<Uint8Array> | Blob {
  if (content.blob && !takesStreams()) return content.blob()
  const chunks = content.chunks()
  let rest: Uint8Array | null = new Uint8Array(0)
  let sent = 0
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        // Node.js reads the body of an aborted request to its end, unless the body itself fails.
        const stop = () => {
          controller.error(watch.signal.reason)
          chunks.return?.().catch(() => {})
        }
        watch.signal.addEventListener('abort', stop, { once: true })
      },
      async pull(controller) {
        watch.pause()
        try {
          onProgress?.({ sent, total: content.size })
          while (rest?.length === 0) rest = await nextBytes(chunks)
          watch.restart()
          if (!rest) return controller.close()
          const slice = rest.subarray(0, sliceSize)
          rest = rest.subarray(sliceSize)
          sent += slice.length
          controller.enqueue(slice)
        } catch (error) {
          // The source, or who listens to its progress, failed: not the network.
          watch.abort(error)
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
