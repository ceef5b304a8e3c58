import { takesStreams } from './platform.ts'
import { bytesOf, type UploadContent } from './upload-content.ts'
import type { Watch } from './watch.ts'

/** How far an upload is. A try that is repeated begins at 0 again. */
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

/** A body for fetch; where it streams, it reports progress, and silence counts only while the network has the word. */
export function fetchBody(
  { content, onProgress }: UploadBody,
  watch: Watch,
): ReadableStream<Uint8Array> | Blob {
  if (content.blob && !takesStreams()) return content.blob()
  const chunks = content.chunks()
  let sent = 0
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        watch.pause()
        try {
          onProgress?.({ sent, total: content.size })
          const chunk = await nextBytes(chunks)
          watch.restart()
          if (!chunk) return controller.close()
          sent += chunk.length
          controller.enqueue(chunk)
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

/** The next bytes that are any; null at the end. */
async function nextBytes(chunks: AsyncIterator<Uint8Array>): Promise<Uint8Array | null> {
  for (;;) {
    const { done, value } = await chunks.next()
    if (done) return null
    const bytes = bytesOf(value)
    if (bytes.length > 0) return bytes
  }
}
