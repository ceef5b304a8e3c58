import type { AttemptTimer } from './attempt-timer.ts'
import { RedirectError } from './errors.ts'
import { bytesOf, takesStreams, type UploadContent, type UploadingXhr } from './upload-content.ts'

/** One request, without its redirects. */
interface Hop {
  readonly method: string
  readonly url: string
  readonly headers: Headers
  readonly body: UploadBody | undefined
  /** The platform follows redirects only of requests without the token. */
  readonly redirect: 'manual' | 'follow'
}

/** Sends a request. Rejects with a `ConnectionError`, or with the reason of `timer.signal`. */
export type Transport = (hop: Hop, timer: AttemptTimer) => Promise<Response>

/** Sends with fetch. */
export function fetchTransport(fetch: typeof globalThis.fetch): Transport {
  return async ({ method, url, headers, body, redirect }, timer) => {
    const init = { method, headers, redirect, signal: timer.signal, credentials: 'omit' } as const
    if (!body) return await timer.during(() => fetch(url, init))

    const { content, onProgress } = body
    const sent = fetchBody(body, timer)
    if (sent instanceof ReadableStream) {
      // With the length, the service can refuse an upload before its bytes arrive.
      if (content.size !== null) headers.set('content-length', String(content.size))
      const streaming = { ...init, body: sent, duplex: 'half' } as const
      return await timer.during(() => fetch(url, streaming))
    }
    // No timeout: fetch reports no upload progress here, and a limit for the whole request would abort slow uploads.
    const response = await timer.during(() => fetch(url, { ...init, body: sent }), false)
    onProgress?.({ sent: sent.size, total: sent.size })
    return response
  }
}

/**
 * Sends an upload with XMLHttpRequest, because browsers report upload progress only there. It follows redirects itself.
 * Browsers omit the token on a redirect to another origin (Fetch, HTTP-redirect fetch), and the response is refused.
 */
export function xhrTransport(Xhr: new () => UploadingXhr): Transport {
  return ({ method, url, headers, body }, timer) => {
    const xhr = new Xhr()
    timer.signal.addEventListener('abort', () => xhr.abort(), { once: true })
    return timer.during(
      () =>
        new Promise((resolve, reject) => {
          const blob = body?.content.blob?.() ?? new Blob([])
          xhr.upload.onprogress = ({ loaded }) => {
            timer.restart()
            try {
              body?.onProgress?.({ sent: loaded, total: blob.size })
            } catch (error) {
              timer.abort(error)
            }
          }
          xhr.onerror = () => reject(new Error('XMLHttpRequest failed'))
          xhr.onload = () => {
            if (new URL(xhr.responseURL || url).origin === new URL(url).origin)
              return resolve(responseOf(xhr))
            timer.abort(
              new RedirectError(url, xhr.responseURL, 'The upload was redirected to another origin'),
            )
          }
          xhr.open(method, url)
          for (const [name, value] of headers) xhr.setRequestHeader(name, value)
          xhr.send(blob)
        }),
    )
  }
}

function responseOf(xhr: UploadingXhr): Response {
  const headers = new Headers()
  for (const line of xhr.getAllResponseHeaders().split('\r\n')) {
    const colon = line.indexOf(':')
    if (colon > 0) headers.append(line.slice(0, colon), line.slice(colon + 1).trim())
  }
  const hasBody = ![204, 205, 304].includes(xhr.status)
  return new Response(hasBody ? xhr.responseText : null, { status: xhr.status, headers })
}

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
function fetchBody(
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
